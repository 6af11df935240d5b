// Names for assistive technology: the widgets and plots of Bokeh and Panel live in shadow roots and leave some of their
// parts without one. Parts are named as they appear; the names are those that stand beside them on the page.
(function () {
  const said = (text) => (text || "").replace(/\s+/g, " ").replace(/[\s:]+$/, "").trim();
  const set = (one, name, value) => { if (value && one.getAttribute(name) !== value) { one.setAttribute(name, value); } };

  // Some sliders have their title in a pane of its own before them: "title: value".
  function title_before(root) {
    const before = root.host.previousElementSibling;
    return before && before.shadowRoot ? said(before.shadowRoot.textContent.replace(/[^]*}/, "")) : "";
  }

  function sliders(root) {
    for (const handle of root.querySelectorAll(".noUi-handle")) {
      const title = root.querySelector(".bk-slider-title"), shown = root.querySelector(".bk-slider-value");
      const inside = title ? title.textContent : "", value = shown ? shown.textContent : "";
      const before = said(inside) ? "" : title_before(root);
      set(handle, "aria-label", said(inside.replace(value, "")) || said(before.replace(/:[^:]*$/, "")));
      set(handle, "aria-valuetext", said(value) || said(before.replace(/^.*:/, "")));  // as shown, in its own units
    }
  }

  // The arrow keys of a field do what its two small buttons do, which are for the mouse alone.
  function spinners(root) {
    for (const button of root.querySelectorAll(".bk-spin-btn")) {
      set(button, "aria-hidden", "true");
      set(button, "tabindex", "-1");
      const field = button.closest(".bk-spin-wrapper").querySelector("input");
      if (!field.dataset.bounded) {
        field.dataset.bounded = "yes";
        field.addEventListener("change", (event) => fill(field, event), true);  // before Bokeh
        field.addEventListener("change", () => bound(field));
      }
    }
  }

  // An emptied field has no number, and the page goes on with the one before: the field shows that again.
  function fill(field, event) {
    if (field.value.trim() && !Number.isNaN(Number(field.value))) { return; }
    for (const view of window.Bokeh.index.query((one) => one.input_el === field)) {
      if (view.model.value === null) { continue; }
      field.value = view.old_value = view.format_value;
      event.stopImmediatePropagation();
    }
  }

  // Bokeh drops a number beyond its bounds and goes on showing it: the nearest number that is allowed takes its place.
  function bound(field) {
    const typed = Number(field.value);
    if (!field.value.trim() || Number.isNaN(typed)) { return; }
    for (const { model } of window.Bokeh.index.query((view) => view.input_el === field)) {
      const nearest = Math.min(Math.max(typed, model.low ?? -Infinity), model.high ?? Infinity);
      if (nearest === typed) { continue; }
      model.setv({ value: nearest, value_throttled: nearest });
      field.value = String(nearest);  // also where that is the value it had
    }
  }

  function checkboxes(root) {
    for (const box of root.querySelectorAll('input[type="checkbox"]')) {
      if (box.labels.length) { continue; }
      const caption = root.querySelector(".bk-label");
      if (!caption) { continue; }
      set(box, "aria-label", said(caption.textContent));
      if (!caption.dataset.toggles) {
        caption.dataset.toggles = "yes";
        caption.addEventListener("click", (event) => { event.preventDefault(); box.click(); });
      }
    }
  }

  const moves = {
    first: "To the beginning", previous: "One step back", reverse: "Play backwards", pause: "Pause", play: "Play",
    next: "One step on", last: "To the end", slower: "Slower", faster: "Faster",
  };

  function players(root) {
    const range = root.querySelector('input[type="range"]');
    if (!range || !root.querySelector("button.play") || root.querySelector(".player")) { return; }
    const title = root.querySelector("[class*=title], label, div > span, div");
    const name = said((title ? title.textContent : "").replace(/:.*$/, "")) || "Moment";
    set(range, "aria-label", name);
    for (const button of root.querySelectorAll("button")) {
      const kind = Object.keys(moves).find((one) => button.classList.contains(one));
      if (kind) { set(button, "aria-label", moves[kind]); set(button, "title", moves[kind]); }
    }
  }

  // A download is a link inside a button: the button takes the focus, and its keys are passed on to the link.
  function downloads(root) {
    for (const button of root.querySelectorAll("button.bk-btn")) {
      const link = button.querySelector("a");
      if (!link || button.dataset.passes) { continue; }
      button.dataset.passes = "yes";
      set(link, "tabindex", "-1");
      button.addEventListener("keydown", (event) => {
        if ((event.key === "Enter" || event.key === " ") && event.target === button) { event.preventDefault(); link.click(); }
      });
    }
  }

  // Which one of several buttons is pressed, and whether a switch is, Bokeh says by a class alone.
  function pressed(root) {
    if (!/(Toggle|RadioButtonGroup|CheckButtonGroup)\b/.test(root.host.className)) { return; }
    for (const button of root.querySelectorAll("button.bk-btn")) {
      set(button, "aria-pressed", String(button.classList.contains("bk-active")));
    }
  }

  // The heading of the card around an element, through shadow roots: that of a card is in a pane of its own.
  function headed(host) {
    while (host && !host.classList.contains("card")) { host = host.getRootNode().host; }
    for (const pane of host ? host.shadowRoot.children : []) {
      const heading = pane.shadowRoot ? pane.shadowRoot.querySelector("h2") : null;
      if (heading) { return said(heading.textContent); }
    }
    return "";
  }

  function plots(root) {
    for (const layer of root.querySelectorAll(".bk-events, .bk-canvas-events")) {
      set(layer, "role", "img");
      set(layer, "aria-label", `Plot: ${headed(root.host) || document.querySelector("h1").textContent}`);
    }
  }

  function name(root) { for (const part of [sliders, spinners, checkboxes, players, downloads, pressed, plots]) { part(root); } }

  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (...how) {
    const root = attach.apply(this, how);
    let due = false;
    const soon = () => {
      if (due) { return; }
      due = true;
      requestAnimationFrame(() => { due = false; name(root); });
    };
    new MutationObserver(soon).observe(root, { childList: true, subtree: true, characterData: true });
    new MutationObserver(soon).observe(root, { subtree: true, attributes: true, attributeFilter: ["class"] });
    // A value in a pane of its own is written by the server, some moments after the handle has moved.
    new MutationObserver(() => setTimeout(soon, 500))
      .observe(root, { subtree: true, attributes: true, attributeFilter: ["aria-valuenow"] });
    return root;
  };
})();
