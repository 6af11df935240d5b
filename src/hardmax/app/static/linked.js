// Linked views of a text: a word that is pointed at, or has the focus, is shown in the sentence, in the plane, in the bars
// and on the map; a click strikes it out. Words carry data-word; the pictures have sources with these names.
(function () {
  const ending = / \(at the end\)$/;
  const parts = (name) => name.replace(ending, "").split(" ");
  const model = (name) => {
    const documents = window.Bokeh ? window.Bokeh.documents : [];
    return documents.length ? documents[0].get_model_by_name(name) : null;
  };

  // All elements of a kind, through shadow roots.
  function* all(root, kind) {
    for (const one of root.querySelectorAll("*")) {
      if (one.matches(kind)) { yield one; }
      if (one.shadowRoot) { yield* all(one.shadowRoot, kind); }
    }
  }
  const words = (root) => all(root, "[data-word]");

  function ring(source, halo, wanted) {
    const from = model(source), to = model(halo);
    if (!from || !to) { return []; }
    const rows = [...from.data.word.keys()].filter((k) => wanted(from.data.word[k]));
    to.data = { x: rows.map((k) => from.data.x[k]), y: rows.map((k) => from.data.y[k]) };
    return rows.map((k) => (from.data.leader ? from.data.leader[k] : ""));
  }

  function bars(leaders) {
    const from = model("contributions"), to = model("bar halo");
    if (!from || !to) { return; }
    const named = new Set(leaders.map((leader) => "★ " + leader));
    let rows = [...from.data.bar.keys()].filter((k) => named.has(from.data.bar[k]));
    if (leaders.length && !rows.length) {
      rows = [...from.data.bar.keys()].filter((k) => /^\d+ more leaders$/.test(from.data.bar[k]));
    }
    const of = (name) => rows.map((k) => from.data[name][k]);
    to.data = { bar: of("bar"), left: of("left"), right: of("right") };
  }

  let shown = null, pointer = null;
  // What is pointed at: a word as it is written, or the name of a dot, which may be several words.
  function show(name, whole, anew) {
    const key = name === null ? null : (whole ? "=" : "") + name;
    if (key === shown && !anew) { return; }
    shown = key;
    const own = new Set(name === null ? [] : whole ? parts(name) : [name]);
    for (const one of words(document)) { one.classList.toggle("here", own.has(one.dataset.word)); }
    const wanted = name === null ? () => false : whole ? (word) => word === name : (word) => parts(word).includes(name);
    bars(ring("words", "plane halo", wanted));
    ring("own words", "map halo", wanted);
    const tip = [...all(document, "[data-tip]")].find((one) => own.has(one.dataset.word));
    const told = tip ? [...all(document, ".told")][0] : null;
    if (told) { told.textContent = tip.dataset.tip; }
  }

  // The element under the pointer, through shadow roots.
  function under() {
    let one = pointer ? document.elementFromPoint(pointer.x, pointer.y) : null;
    while (one && one.shadowRoot) {
      const inner = one.shadowRoot.elementFromPoint(pointer.x, pointer.y);
      if (!inner || inner === one) { break; }
      one = inner;
    }
    return one instanceof Element ? one.closest("[data-word]") : null;
  }
  // The page may write its words anew while the pointer rests on one, and the browser need not report an event of the
  // pointer then: the words that are there now are shown as the old ones were.
  function renew() {
    if (shown === null) { return; }
    const same = (own) => [...words(document)].filter((one) => own.includes(one.dataset.word));
    const lacking = (own) => same(own).some((one) => !one.classList.contains("here"));
    if (shown.startsWith("=")) {
      const name = shown.slice(1);
      if (lacking(parts(name))) { show(name, true, true); }
      return;
    }
    const now = under() || (focused() ? focused().closest("[data-word]") : null);
    if (!now) { show(null); return; }
    if (now.dataset.word !== shown || lacking([shown])) { show(now.dataset.word, false, true); }
  }
  function focused() {
    let one = document.activeElement;
    while (one && one.shadowRoot && one.shadowRoot.activeElement) { one = one.shadowRoot.activeElement; }
    return one;
  }
  document.addEventListener("mousemove", (event) => { pointer = { x: event.clientX, y: event.clientY }; });
  document.documentElement.addEventListener("mouseleave", () => { pointer = null; });
  setInterval(renew, 150);

  function strike(word) {
    const source = model("struck");
    if (!source) { return; }
    const now = [...source.data.word];
    const next = word === null ? [] : now.includes(word) ? now.filter((one) => one !== word) : [...now, word];
    source.data = { word: next };
  }

  const at = (event) => {
    const one = event.composedPath()[0];
    return one instanceof Element ? one.closest("[data-word]") : null;
  };
  for (const kind of ["mouseover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const one = at(event);
      if (one) { show(one.dataset.word, false); }
    });
  }
  for (const kind of ["mouseout", "focusout"]) {
    document.addEventListener(kind, (event) => { if (at(event)) { show(null); } });
  }

  // A mark of the first text is struck out; the page writes the marks anew, and a long text stays scrolled as it was and
  // the focus goes to where it was.
  function press(one) {
    if (!one.dataset.place) { return; }
    const place = one.dataset.place, down = one.closest(".marked").scrollTop;
    strike(one.dataset.word);
    const until = Date.now() + 10000;
    const timer = setInterval(() => {
      const again = [...words(document)].find((other) => other.dataset.place === place);
      const lost = document.activeElement === document.body || document.activeElement === null || one.isConnected;
      if (again && again !== one) { again.closest(".marked").scrollTop = down; }
      if (again && again !== one && lost) { again.tabIndex = 0; again.focus(); }
      if ((again && again !== one) || Date.now() > until) { clearInterval(timer); }
    }, 50);
  }
  document.addEventListener("click", (event) => {
    const first = event.composedPath()[0];
    if (first instanceof Element && first.closest("[data-restore]")) { strike(null); return; }
    const one = at(event);
    if (one) { press(one); }
  });
  // Before the keys of the player, which the same keys would move.
  document.addEventListener("keydown", (event) => {
    const one = at(event);
    if (!one || !one.dataset.place) { return; }
    const marks = [...one.closest(".marked").querySelectorAll("[data-place]")], here = marks.indexOf(one);
    const next = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: marks.length - 1 }[event.key];
    const strikes = event.key === "Enter" || event.key === " ";
    if (!strikes && next === undefined) { return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    if (strikes) { press(one); }
    if (strikes || !marks[next]) { return; }
    one.tabIndex = -1;  // one stop of the Tab key for the whole text; the arrows go from word to word
    marks[next].tabIndex = 0;
    marks[next].focus();
  }, true);
  window.hardmaxLinked = { show };
})();
