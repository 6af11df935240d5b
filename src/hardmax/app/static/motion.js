// Moving tokens of the plane, painted at the rate of the screen on two canvases of their own, between the plot and its labels:
// trails of past layers, which change with the layer alone, and the tokens with the last piece of their trails. Bokeh paints
// only when the motion begins and when it ends: it would prepare and paint every mark and every trail anew in each frame.
(function () {
  const WIDTH = 1.2, ALPHA = 0.45;  // of trails, as view.py has them

  // Bokeh's star: corners of a pentagram, from the upper one on.
  function star(pen, r) {
    const inner = (3 - Math.sqrt(5)) / 2;
    for (let k = 0; k < 10; k++) {
      const far = k % 2 ? inner * r : r, angle = (k / 5 - 0.5) * Math.PI;
      pen.lineTo(far * Math.cos(angle), far * Math.sin(angle));
    }
    pen.closePath();
  }

  // A mark is painted once and then copied.
  const sprites = new Map();
  function sprite(fill, line, size, shape, wide, ratio) {
    const key = [fill, line, size, shape, wide, ratio].join(" ");
    let made = sprites.get(key);
    if (!made) {
      const room = Math.ceil(size + wide + 2), canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
      canvas.width = canvas.height = Math.ceil(room * ratio);
      pen.scale(ratio, ratio);
      pen.translate(room / 2, room / 2);
      Object.assign(pen, { fillStyle: fill, strokeStyle: line, lineWidth: wide });
      pen.beginPath();
      if (shape === "star") { star(pen, size / 2); } else { pen.arc(0, 0, size / 2, 0, 2 * Math.PI); }
      pen.fill();
      pen.stroke();
      made = { canvas, room };
      if (sprites.size > 500) { sprites.clear(); }  // other colours, after many changes
      sprites.set(key, made);
    }
    return made;
  }

  function sheet(place, { left, top, width, height }, ratio) {
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    Object.assign(canvas.style, { position: "absolute", pointerEvents: "none", left: left + "px", top: top + "px",
      width: width + "px", height: height + "px" });
    canvas.className = "motion";
    place.before(canvas);
    pen.scale(canvas.width / width, canvas.height / height);
    return pen;
  }

  // The canvases of a stage, made anew where the plot has another size or was drawn into another element.
  function sheets_of(stage, view) {
    const { bbox } = view.frame, ratio = view.canvas_view.pixel_ratio, place = view.canvas_view.overlays.el;
    const box = [bbox.left, bbox.top, bbox.width, bbox.height, ratio].join(" ");
    if (!stage.sheets || stage.sheets.box !== box || stage.sheets.place !== place) {
      drop(stage);
      stage.sheets = { box, place, ratio, past: sheet(place, bbox, ratio), now: sheet(place, bbox, ratio), width: bbox.width,
        height: bbox.height };
    }
    return stage.sheets;
  }

  function drop(stage) {
    if (!stage.sheets) { return; }
    for (const pen of [stage.sheets.past, stage.sheets.now]) { pen.canvas.remove(); }
    stage.sheets = null;
  }

  // Factors from the coordinates of the plot to pixels of its frame.
  function scale_of({ frame: { bbox, x_scale, y_scale } }) {
    const x0 = x_scale.compute(0), y0 = y_scale.compute(0);
    return { x0: x0 - bbox.left, y0: y0 - bbox.top, x1: x_scale.compute(1) - x0, y1: y_scale.compute(1) - y0 };
  }

  // Rows of the chosen tokens by the colour of their trails.
  function by_colour(stage, f) {
    if (stage.coloured && stage.coloured.of === f) { return stage.coloured.rows; }
    const rows = new Map(), { palette, low_color } = stage.plot.renderers
      .find((one) => one.data_source === stage.trails).glyph.line_color.transform;
    f.chosen[0].forEach((i, j) => {
      const rank = f.rank[0][j], colour = rank < 0 ? low_color : palette[Math.min(rank, palette.length - 1)];
      if (!rows.has(colour)) { rows.set(colour, []); }
      rows.get(colour).push(i);
    });
    stage.coloured = { of: f, rows };
    return rows;
  }

  function trails(stage, f, sheets, { x0, y0, x1, y1 }, upto, x, y) {
    const { past, now } = sheets, all = f.positions[0], [, n] = f.shape[0], rows = by_colour(stage, f);
    const fresh = sheets.of !== f || sheets.upto !== upto || sheets.scale !== [x0, y0, x1, y1].join(" ");
    if (fresh) {
      past.clearRect(0, 0, sheets.width, sheets.height);
      Object.assign(sheets, { of: f, upto, scale: [x0, y0, x1, y1].join(" ") });
    }
    for (const pen of [past, now]) { Object.assign(pen, { lineWidth: WIDTH, globalAlpha: ALPHA, lineJoin: "bevel" }); }
    for (const [colour, chosen] of rows) {
      past.strokeStyle = now.strokeStyle = colour;
      now.beginPath();
      for (const i of chosen) {
        const base = 2 * (upto * n + i);
        now.moveTo(x0 + x1 * all[base], y0 + y1 * all[base + 1]);
        now.lineTo(x0 + x1 * x[i], y0 + y1 * y[i]);
        if (!fresh || upto === 0) { continue; }
        past.beginPath();
        for (let k = 0; k <= upto; k++) {
          past.lineTo(x0 + x1 * all[2 * (k * n + i)], y0 + y1 * all[2 * (k * n + i) + 1]);
        }
        past.stroke();
      }
      now.stroke();
    }
    now.globalAlpha = 1;
  }

  window.hardmaxMotion = {
    // Paint a moment: places and marks of all tokens, and trails up to the layer `upto`.
    paint(stage, view, f, upto, x, y, { fill, line, size, shape, wide }) {
      const sheets = sheets_of(stage, view), scale = scale_of(view), { now, ratio } = sheets;
      now.clearRect(0, 0, sheets.width, sheets.height);
      if (f.trails[0]) { trails(stage, f, sheets, scale, upto, x, y); }
      for (let i = 0; i < x.length; i++) {
        const { canvas, room } = sprite(fill[i], line[i], size[i], shape[i], wide[i], ratio);
        now.drawImage(canvas, scale.x0 + scale.x1 * x[i] - room / 2, scale.y0 + scale.y1 * y[i] - room / 2, room, room);
      }
    },
    drop,
  };
})();
