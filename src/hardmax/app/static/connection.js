// When the server stops, the page says so and dims its results; when it answers again, the page is loaded anew at its
// address, which keeps the state, and what was typed is put back. Uploads are on the server alone, so they are lost.
(function () {
  const every = 1000;  // milliseconds between two attempts to reach the server
  const patience = 10000;  // before loading again a page that never had a connection, so that this cannot spin
  const place = "hardmax-typed " + location.pathname;
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

  function remember() {
    const typed = [...fields(document)].map(([label, field]) => [label, field.value]);
    try { sessionStorage.setItem(place, JSON.stringify(typed)); } catch (e) {}  // without a store nothing is put back
  }

  function put_back() {
    let typed = null;
    try { typed = JSON.parse(sessionStorage.getItem(place)); sessionStorage.removeItem(place); } catch (e) {}
    if (typed === null) { return; }
    say("The connection was lost and is back. Files that were uploaded must be chosen again.", "back");
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
        if (answer.ok && Date.now() >= earliest) { remember(); location.reload(); return; }
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
  const timer = setInterval(() => {
    const documents = window.Bokeh ? window.Bokeh.documents : [];
    if (opened && documents.length && documents[0].is_idle) { clearInterval(timer); put_back(); }
  }, 100);
})();
