// When the server stops, the page says so and dims its results; when it answers again, the page is loaded anew at its
// address, which keeps the state and uploads, and what was typed is put back. The same where a change that the server sent
// could not be applied: from then on the page would differ from the server.
(function () {
  const every = 1000;  // milliseconds between two attempts to reach the server
  const patience = 10000;  // before loading again a page that never had a connection, so that this cannot spin
  const place = "hardmax-typed " + location.pathname, renewed = "hardmax-renewed " + location.pathname;
  const pause = 15000;  // milliseconds between two reloads by itself, so that a fault that returns does not spin
  let lost = false, opened = false;

  // All text fields by label; widgets are in shadow roots.
  function* fields(root) {
    for (const one of root.querySelectorAll("*")) {
      if (one.matches("textarea, input[type=text]") && one.labels.length) { yield [one.labels[0].textContent, one]; }
      if (one.shadowRoot) { yield* fields(one.shadowRoot); }
    }
  }

  function say(words, kind) {
    const banner = document.getElementById("connection");
    banner.querySelector("span").textContent = words;
    banner.className = kind;
    banner.hidden = false;
  }

  function remember(why) {
    const typed = [...fields(document)].map(([label, field]) => [label, field.value]);
    try { sessionStorage.setItem(place, JSON.stringify({ why, typed })); } catch (e) {}  // without a store nothing is put back
  }

  function put_back() {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(place)); sessionStorage.removeItem(place); } catch (e) {}
    if (kept === null) { return; }
    const { why, typed } = kept;
    say(`${why} Files that its link does not keep must be chosen again.`, "back");
    const now = new Map(fields(document));
    for (const [label, text] of typed) {
      const field = now.get(label);
      if (!field || field.value === text) { continue; }
      field.value = text;
      for (const event of ["input", "change"]) { field.dispatchEvent(new Event(event, { bubbles: true })); }
    }
  }

  async function return_when_answered() {
    const earliest = Date.now() + (opened ? 0 : patience);
    for (;;) {
      await new Promise((done) => setTimeout(done, every));
      try {
        const answer = await fetch("./alive", { cache: "no-store" });
        if (answer.ok && Date.now() >= earliest) { remember("The connection was lost and is back."); location.reload(); return; }
      } catch (e) {}  // nobody answers yet
    }
  }

  function lose() {
    if (lost) { return; }
    lost = true;
    say("The explorer does not answer: its server has stopped, or cannot be reached. What is shown is as it was. This "
      + "page goes on by itself as soon as the server is back.", "lost");
    document.getElementById("main").classList.add("lost");
    return_when_answered();
  }

  function renew() {
    if (lost) { return; }
    lost = true;
    document.getElementById("main").classList.add("lost");
    let before = 0;
    try { before = Number(sessionStorage.getItem(renewed)); sessionStorage.setItem(renewed, Date.now()); } catch (e) {}
    if (Date.now() - before < pause) {
      say("This page could not show a change, again. Load it once more to go on; its address keeps the state.", "lost");
      return;
    }
    say("This page could not show a change. It is loaded again at its address.", "lost");
    remember("The page could not show a change and was loaded again.");
    setTimeout(() => location.reload(), 600);  // long enough to be read, and for the address to be written
  }

  // Messages are applied to the document of the page; one that fails is applied in part.
  function watch(shown) {
    const apply = shown.apply_json_patch;
    shown.apply_json_patch = function (...patch) {
      try { return apply.apply(this, patch); } catch (error) { renew(); throw error; }
    };
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("#connection button")) { document.getElementById("connection").hidden = true; }
  });
  window.WebSocket = class extends window.WebSocket {
    constructor(...how) {
      super(...how);
      this.addEventListener("open", () => { opened = true; });
      // A page that is being left closes its connection too; nothing is said there, because its timers do not run.
      this.addEventListener("close", () => setTimeout(lose, 300));
    }
  };
  // A server that dies while it builds a page has sent the first part of it alone (early.py).
  document.addEventListener("DOMContentLoaded", () => {
    if (!document.querySelector("main > .body, main > #failed")) { lose(); }
  });
  let watched = null;
  const timer = setInterval(() => {
    const [shown] = window.Bokeh ? window.Bokeh.documents : [];
    if (shown && shown !== watched) { watched = shown; watch(shown); }
    if (opened && shown && shown.is_idle) { clearInterval(timer); put_back(); }
  }, 100);
})();
