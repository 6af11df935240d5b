// The tour of a page and the glossary; their words come from guide.py. The tour starts only when it is asked for.
(function () {
  const guide = JSON.parse(document.getElementById("guide").textContent);
  const seen = "hardmax-tour " + guide.page;
  const store = (call) => { try { return call(); } catch (e) { return null; } };  // without a store nothing is remembered
  const said = (one) => one.textContent.replace(/\s+/g, " ").trim();

  // All elements of a kind, through shadow roots.
  function* all(root, kind) {
    for (const one of root.querySelectorAll("*")) {
      if (one.matches(kind)) { yield one; }
      if (one.shadowRoot) { yield* all(one.shadowRoot, kind); }
    }
  }

  // ---- the tour

  const named = "h1, h2, label, button, nav a, summary";
  function find(at) {
    if (!at) { return document.querySelector("canvas") || [...all(document, "canvas")][0] || null; }
    const called = (one) => one.getAttribute("aria-label") || said(one);
    const shown = [...all(document, named)].filter((one) => one.getClientRects().length);
    const exact = shown.filter((one) => called(one) === at);
    const found = exact.find((one) => one.matches("h1, h2")) || exact[0] || shown.find((one) => said(one).startsWith(at));
    if (found && found.matches("label")) { return found.getRootNode().host || found; }
    if (!found || !found.matches("h2")) { return found || null; }
    if (found.closest(".example")) { return found.closest(".example"); }
    const pane = found.getRootNode().host, card = pane && pane.getRootNode().host;
    return card || pane || found;
  }

  let step = -1, from = null;
  const box = document.createElement("div"), ring = document.createElement("div");
  ring.id = "tour-ring";
  box.id = "tour-box";
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-labelledby", "tour-count");
  box.innerHTML = '<p id="tour-count"></p><p id="tour-words" aria-live="polite"></p><div><button type="button" '
    + 'data-go="back">Back</button><button type="button" data-go="on"></button>'
    + '<button type="button" data-go="close">Close</button></div>';

  function place() {
    if (step < 0) { return; }
    const target = find(guide.stops[step].at);
    const spot = target ? target.getBoundingClientRect() : null;
    const inside = spot && spot.width > 0 && spot.bottom > 0 && spot.top < innerHeight && spot.right > 0 && spot.left < innerWidth
      && getComputedStyle(target).visibility !== "hidden";
    ring.hidden = !inside;
    const size = box.getBoundingClientRect();
    let left = (innerWidth - size.width) / 2, top = innerHeight - size.height - 20;
    if (inside) {
      const edge = { left: Math.max(2, spot.left - 5), top: Math.max(2, spot.top - 5) };
      edge.right = Math.min(innerWidth - 2, spot.right + 5);
      edge.bottom = Math.min(innerHeight - 2, spot.bottom + 5);
      Object.assign(ring.style, { left: edge.left + "px", top: edge.top + "px",
        width: edge.right - edge.left + "px", height: edge.bottom - edge.top + "px" });
      if (innerWidth > 700) {
        left = Math.min(Math.max(10, spot.left), innerWidth - size.width - 10);
        if (edge.bottom + size.height + 12 < innerHeight) { top = edge.bottom + 10; }
        else if (edge.top - size.height - 12 > 0) { top = edge.top - size.height - 10; }
        else if (edge.right + size.width + 12 < innerWidth) { left = edge.right + 10; top = Math.max(10, edge.top); }
        else if (edge.left - size.width - 12 > 0) { left = edge.left - size.width - 10; top = Math.max(10, edge.top); }
      }
    }
    Object.assign(box.style, { left: left + "px", top: Math.max(10, top) + "px" });
  }

  function show(next) {
    if (next >= guide.stops.length || next < 0) { close(); return; }
    step = next;
    box.querySelector("#tour-count").textContent = "Step " + (step + 1) + " of " + guide.stops.length;
    box.querySelector("[data-go=back]").disabled = step === 0;
    box.querySelector("[data-go=on]").textContent = step + 1 < guide.stops.length ? "Next" : "Done";
    const target = find(guide.stops[step].at);
    // On a phone the controls are in a drawer, and most of the page is above it: its top has the picture.
    const away = target && innerWidth <= 700 && getComputedStyle(target).visibility === "hidden";
    if (away) {
      scrollTo({ top: 0 });
    } else if (target) {
      const spot = target.getBoundingClientRect();
      if (spot.top < 0 || spot.bottom > innerHeight) {
        scrollBy({ top: spot.height > innerHeight - 200 ? spot.top - 80 : spot.top - (innerHeight - spot.height) / 3 });
      }
    }
    box.querySelector("#tour-words").textContent = guide.stops[step].words + (away ? " (Under Controls.)" : "");
    place();
    box.querySelector("[data-go=on]").focus({ preventScroll: true });
  }

  function open(button) {
    from = button;
    document.body.append(ring, box);
    store(() => localStorage.setItem(seen, "yes"));
    greet();
    show(0);
  }

  function close() {
    step = -1;
    ring.remove();
    box.remove();
    if (from) { from.focus({ preventScroll: true }); }
  }

  function greet() {
    const button = document.getElementById("tour");
    button.textContent = store(() => localStorage.getItem(seen)) ? "Tour" : "New here? A tour in five steps";
  }

  box.addEventListener("click", (event) => {
    const button = event.target.closest("[data-go]");
    if (button) { ({ back: () => show(step - 1), on: () => show(step + 1), close })[button.dataset.go](); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hide(); }
    if (step < 0) { return; }
    if (event.key === "Escape") { close(); }
    else if (event.key === "ArrowRight") { show(step + 1); }
    else if (event.key === "ArrowLeft") { if (step) { show(step - 1); } }
    else { return; }
    event.preventDefault();
    event.stopImmediatePropagation();  // these keys would also move the player of the page
  }, true);
  for (const kind of ["scroll", "resize"]) { addEventListener(kind, () => requestAnimationFrame(place), { passive: true }); }

  // ---- the glossary

  const terms = Object.keys(guide.glossary).sort((a, b) => b.length - a.length);
  const known = new Map(terms.map((term) => [term.toLowerCase(), term]));
  const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp("(?<![\\w-])(" + escaped.join("|") + ")(s)?(?![\\w-])", "gi");
  const places = "p.soft, th, h2, li.soft, p.task, .intro > p";
  const not = "a, button, code, mark, .term, .told, .example, [data-word]";
  const tip = document.createElement("div");
  tip.id = "glossary";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;

  const read = (found) => known.get((found[1] + (found[2] || "")).toLowerCase()) || known.get(found[1].toLowerCase());

  // The first occurrence of each term on the page becomes a word that explains itself.
  const marked = new Map();
  function mark(root) {
    for (const place of root.querySelectorAll(places)) {
      const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
      const nodes = [];
      while (texts.nextNode()) { nodes.push(texts.currentNode); }
      for (const node of nodes) { mark_text(node); }
    }
  }
  // A text is cut only where a word is marked: every cut is a change of the page, and changes are looked through again.
  function mark_text(text) {
    if (text.parentElement.closest(not)) { return; }
    const found = Array.from(text.data.matchAll(pattern));
    for (const one of found.reverse()) {  // from the end, so that the places of the others stay
      const term = read(one), earlier = found.some((other) => other.index < one.index && read(other) === term);
      if (earlier || (marked.has(term) && marked.get(term).isConnected)) { continue; }
      const word = text.splitText(one.index), item = document.createElement("dfn");
      word.splitText(one[0].length);
      Object.assign(item, { className: "term", tabIndex: 0 });
      item.dataset.term = term;
      item.setAttribute("role", "button");
      item.setAttribute("aria-label", one[0] + ": " + guide.glossary[term]);
      word.replaceWith(item);
      item.append(word);
      marked.set(term, item);
    }
  }

  function tell(one) {
    tip.textContent = guide.glossary[one.dataset.term];
    tip.hidden = false;
    const spot = one.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const above = spot.bottom + size.height + 10 > innerHeight;
    tip.style.left = Math.max(8, Math.min(spot.left, innerWidth - size.width - 8)) + "px";
    tip.style.top = (above ? spot.top - size.height - 6 : spot.bottom + 6) + "px";
  }
  function hide() { tip.hidden = true; }
  const term = (event) => {
    const one = event.composedPath()[0];
    return one instanceof Element ? one.closest(".term") : null;
  };
  for (const kind of ["mouseover", "focusin", "click"]) {
    document.addEventListener(kind, (event) => { const one = term(event); if (one) { tell(one); } });
  }
  for (const kind of ["mouseout", "focusout"]) { document.addEventListener(kind, (event) => { if (term(event)) { hide(); } }); }
  addEventListener("scroll", hide, { passive: true });

  function watch(root) {
    let due = false;
    const soon = () => {
      if (due) { return; }
      due = true;
      requestAnimationFrame(() => { due = false; mark(root); });
    };
    new MutationObserver(soon).observe(root, { childList: true, subtree: true });
    soon();
  }
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (...how) {
    const root = attach.apply(this, how);
    watch(root);
    return root;
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.body.append(tip);
    for (const intro of document.querySelectorAll(".intro")) { mark(intro); }
    const button = document.getElementById("tour");
    if (!button || !guide.stops.length) { return; }
    greet();
    button.hidden = false;
    button.addEventListener("click", () => open(button));
  });
})();
