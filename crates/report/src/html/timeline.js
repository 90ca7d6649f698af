// Draws each timeline of the page on a canvas, where it can be zoomed and its tracks can be hidden.
//
// Every track has a lane of its own, one above the other on one time axis, the first one at the top and higher than the others:
// on a common ground, a series of events hides the worker behind it. A hidden track gives its room to the others.
//
// uPlot draws the time axis and the legend. The lanes and the readings are drawn here: there are too many for its paths, and a dot must not
// hide the ones below it. While a reading is narrower than a few pixels, a dot is the darker the more readings it stands
// for; from then on each reading is a bar as long as it lasted.
"use strict";
(() => {
  // Heights in pixels of the page: of the first lane, of each other one, of the title above a lane, and of the time axis.
  const FIRST = 150, OTHER = 76, TITLE = 20, TIMES = 34, ABOVE = 4;
  // Width of a reading, in pixels of the page, from which it is a bar.
  const BAR = 3;

  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // Three significant digits in the largest unit that keeps the number at 1 or more, as in the text of the page.
  const shown = (value, units) => {
    if (value == null || !isFinite(value)) return "–";
    if (value === 0) return "0";
    let [size, unit] = units[0];
    for (const [larger, name] of units) if (Math.abs(value) >= larger * 0.9995) [size, unit] = [larger, name];
    const number = value / size;
    const text = Math.abs(number) >= 1e6 ? number.toExponential(2) : String(Number(number.toPrecision(3)));
    return unit ? text + "\u00a0" + unit : text;
  };

  // Seconds with the digits that distinguish them at this distance.
  const time = (seconds, distance) => {
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(distance) - 1e-9)));
    return seconds.toFixed(digits) + "\u00a0s";
  };

  const lasting = seconds => shown(seconds * 1e9, [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]);

  const unpacked = text => {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let place = 0; place < letters.length; place++) bytes[place] = letters.charCodeAt(place);
    return new Float32Array(bytes.buffer);
  };

  const rgb = text => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  };

  // Dots as pixels. Where there are more readings than columns, a dot is the more opaque the more readings fall on it.
  const dots = (u, box, x, y, first, last, skipZero, hue) => {
    // Events are few, and each is meant to be seen.
    const { left, top, width, height } = box;
    const { min, max } = u.scales.x, high = y.high;
    const size = Math.max(2, Math.round((skipZero ? 2.5 : 1.5) * devicePixelRatio));
    const count = new Uint16Array(width * height);
    const touched = [];
    for (let place = first; place <= last; place++) {
      const value = y.values[place];
      if (!(value >= 0) || (skipZero && value === 0)) continue;
      const across = Math.floor((x[place] - min) / (max - min) * (width - size));
      const down = Math.round((1 - value / high) * (height - size));
      if (across < 0 || across > width - size || down < 0) continue;
      const pixel = down * width + across;
      if (count[pixel] === 0) touched.push(pixel);
      if (count[pixel] < 65535) count[pixel]++;
    }
    const image = new ImageData(width, height);
    const pixels = image.data, [red, green, blue] = rgb(hue);
    const single = Math.max(110, 255 - 36 * Math.log2(Math.max(1, (last - first) / width)));
    for (const pixel of touched) {
      const alpha = Math.min(255, single + 45 * Math.log2(count[pixel]));
      for (let down = 0; down < size; down++) {
        for (let across = 0; across < size; across++) {
          const at = (pixel + down * width + across) * 4;
          pixels[at] = red; pixels[at + 1] = green; pixels[at + 2] = blue;
          if (pixels[at + 3] < alpha) pixels[at + 3] = alpha;
        }
      }
    }
    const layer = document.createElement("canvas");
    layer.width = width; layer.height = height;
    layer.getContext("2d").putImageData(image, 0, 0);
    u.ctx.drawImage(layer, left, top);
  };

  // The least and the greatest value in each column of pixels, joined to the column before.
  const reaches = (u, box, x, y, first, last) => {
    const { left, top, width, height } = box;
    const { min, max } = u.scales.x, high = y.high, thick = Math.max(1, Math.round(devicePixelRatio * 1.5));
    const down = value => Math.round(top + (1 - value / high) * (height - thick));
    let column = -1, low = 0, top_ = 0, before = null;
    const flush = () => {
      if (column >= 0) u.ctx.fillRect(left + column, top_, 1, Math.max(thick, low - top_ + thick));
    };
    for (let place = first; place <= last; place++) {
      const value = y.values[place];
      if (!(value >= 0)) { before = null; continue; }
      const across = Math.floor((x[place] - min) / (max - min) * width), at = down(value);
      if (across !== column) {
        flush();
        // Columns without a reading belong to the reading that ends after them.
        if (before != null && across > column + 1) u.ctx.fillRect(left + column + 1, at, across - column - 1, thick);
        column = across;
        low = top_ = at;
      }
      low = Math.max(low, at, before ?? at);
      top_ = Math.min(top_, at, before ?? at);
      before = at;
    }
    flush();
  };

  // Each reading as a bar from the reading before to itself.
  const bars = (u, box, x, y, first, last, skipZero, began, joined) => {
    const { left, top, width, height } = box;
    const { min, max } = u.scales.x, high = y.high, thick = Math.round(3 * devicePixelRatio);
    let before = null;
    for (let place = first; place <= last; place++) {
      const value = y.values[place];
      if (!(value >= 0) || (skipZero && value === 0)) { before = null; continue; }
      const from = left + ((place ? x[place - 1] : began) - min) / (max - min) * width;
      const to = left + (x[place] - min) / (max - min) * width;
      const at = top + (1 - value / high) * (height - thick);
      u.ctx.fillRect(from, at, Math.max(thick / 2, to - from - (joined || to - from < 6 ? 0 : 1)), thick);
      if (joined && before != null) u.ctx.fillRect(from, Math.min(at, before), 1, Math.abs(at - before) + thick);
      before = at;
    }
  };

  // The round number at or above a value, in the unit in which it is shown.
  const roundUp = (value, units) => {
    let place = 0;
    units.forEach(([larger], other) => { if (value >= larger) place = other; });
    const [size] = units[place], next = units[place + 1]?.[0], number = value / size;
    const power = 10 ** Math.floor(Math.log10(number) + 1e-9);
    const round = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(digit => digit * power * size).find(round => round >= value * (1 - 1e-6));
    return next && round > next * 0.8 ? Math.max(next, value) : round;
  };

  const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";

  const start = root => {
    const data = JSON.parse(root.querySelector("script").textContent);
    const lengths = unpacked(data.lengths);
    const x = new Float64Array(lengths.length);
    let now = data.began;
    for (let place = 0; place < x.length; place++) x[place] = now += lengths[place];
    const end = now, whole = { min: data.began, max: end };
    const tracks = data.tracks.map(track => {
      const values = unpacked(track.values), units = data.scales[track.scale].units;
      let greatest = 0;
      for (const value of values) if (value > greatest) greatest = value;
      return { ...track, values, units, high: greatest > 0 ? roundUp(greatest, units) : 1, isAllZero: greatest === 0 };
    });
    const weight = track => track === tracks[0] ? FIRST : OTHER;
    const height = tracks.reduce((sum, track) => sum + weight(track) + TITLE, ABOVE + TIMES);

    // The lane of each track that is shown, in pixels of the canvas.
    const lanes = u => {
      const title = Math.round(TITLE * devicePixelRatio);
      const shownTracks = tracks.filter((_, place) => u.series[place + 1].show);
      const room = u.bbox.height - title * shownTracks.length;
      const whole = shownTracks.reduce((sum, track) => sum + weight(track), 0);
      const found = new Map();
      let top = u.bbox.top;
      for (const track of shownTracks) {
        const height = Math.max(8, Math.floor(room * weight(track) / whole));
        found.set(track, { left: u.bbox.left, width: u.bbox.width, top: top + title, height });
        top += title + height;
      }
      return found;
    };

    const draw = track => (u, index, first, last) => {
      const hue = colour("hue-" + track.hue);
      const events = track.trace === "events";
      const box = lanes(u).get(track);
      if (!box) return null;
      const { ctx } = u;
      ctx.save();
      ctx.beginPath();
      ctx.rect(box.left, box.top, box.width, box.height);
      ctx.clip();
      ctx.fillStyle = hue;
      const pixels = (last - first) / Math.max(1e-12, x[last] - x[first]) * (u.scales.x.max - u.scales.x.min);
      if (box.width / pixels >= BAR * devicePixelRatio || pixels < 2) bars(u, box, x, track, first, last, events, data.began, track.trace === "line");
      else if (track.trace === "line") reaches(u, box, x, track, first, last);
      else dots(u, box, x, track, first, last, events, hue);
      ctx.restore();
      return null;
    };

    // The ground of each lane: its name, and lines at 0 and at its round greatest number; the first one has more of them.
    const drawLanes = u => {
      const { ctx } = u, ratio = devicePixelRatio;
      ctx.save();
      ctx.font = FONT.replace("12px", 12 * ratio + "px");
      for (const [track, { left, top, width, height }] of lanes(u)) {
        ctx.textAlign = "left";
        ctx.textBaseline = "alphabetic";
        ctx.fillStyle = colour("hue-" + track.hue);
        ctx.fillText(track.title, left + 2 * ratio, top - 6 * ratio);
        ctx.textAlign = "right";
        ctx.textBaseline = "middle";
        const parts = track === tracks[0] ? 4 : 1;
        for (let part = 0; part <= parts; part++) {
          const at = Math.round(top + (1 - part / parts) * (height - 1));
          ctx.fillStyle = colour("line");
          ctx.fillRect(left, at, width, Math.max(1, Math.round(ratio / 2)));
          ctx.fillStyle = colour("muted");
          if (!track.isAllZero || part === 0) ctx.fillText(shown(track.high * part / parts, track.units), left - 8 * ratio, at);
        }
      }
      ctx.restore();
    };

    const hint = document.createElement("p");
    hint.className = "hint";
    const view = document.createElement("span");
    const reset = document.createElement("button");
    reset.type = "button";
    reset.textContent = "show all";
    const told = document.createElement("span");
    told.textContent = "Drag to zoom in, down to single readings. Double-click to see all. Click a name to hide it. ";
    told.append(reset);
    hint.append(told, view);
    if (data.marks.length && data.marked) {
      const swatch = document.createElement("i");
      swatch.className = "swatch mark";
      const marked = document.createElement("span");
      marked.append(swatch, data.marked);
      hint.append(marked);
    }

    const describe = u => {
      const { min, max } = u.scales.x;
      const all = max - min >= (end - data.began) * 0.9999;
      reset.hidden = all;
      const [first, last] = u.series[0].idxs ?? [0, x.length - 1];
      const readings = (last - first + 1).toLocaleString("en");
      view.textContent = readings + " readings in " + lasting(max - min) + (all ? "" : " from " + time(min, (max - min) / 100));
      root.dataset.zoomed = String(!all);
    };

    const label = track => {
      const text = document.createElement("span");
      text.textContent = track.name;
      return text;
    };
    const options = {
      width: Math.max(280, root.clientWidth),
      height,
      padding: [ABOVE, 16, 0, 0],
      pxAlign: 1,
      scales: { lanes: { range: [0, 1] }, x: { time: false, range: (u, min, max) => max > min ? [min <= x[0] ? whole.min : min, Math.min(max, end)] : [whole.min, end] } },
      axes: [
        {
          font: FONT,
          stroke: () => colour("muted"),
          grid: { stroke: () => colour("line"), width: 1 },
          ticks: { stroke: () => colour("line"), width: 1, size: 5 },
          size: TIMES,
          values: (u, splits, place, space, step) => splits.map(value => time(value, step)),
          space: 90,
        },
        // Room for the numbers of the lanes.
        { scale: "lanes", side: 3, size: 70, grid: { show: false }, ticks: { show: false }, values: (u, splits) => splits.map(() => "") },
      ],
      series: [
        { label: "time", value: (u, value) => value == null ? "–" : time(value, 1e-5) },
        ...tracks.map(track => ({
          label: label(track),
          scale: "lanes",
          stroke: () => colour("hue-" + track.hue),
          paths: draw(track),
          points: { show: false },
          value: (u, value) => value == null ? "–" : shown(value, track.units),
        })),
      ],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 4 } },
      legend: { markers: { width: 0, fill: (u, index) => colour("hue-" + tracks[index - 1].hue) } },
      hooks: {
        drawClear: [u => {
          u.ctx.save();
          u.ctx.fillStyle = colour("mark");
          for (const [from, to] of data.marks) {
            const left = Math.max(u.bbox.left, u.valToPos(from, "x", true));
            const right = Math.min(u.bbox.left + u.bbox.width, Math.max(u.valToPos(to, "x", true), left + devicePixelRatio));
            if (right > left) u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
          }
          u.ctx.restore();
        }],
        drawAxes: [drawLanes],
        draw: [describe],
        setSeries: [(u, index, changed) => {
          if (index == null || changed.show == null) return;
          const row = root.querySelectorAll(".u-series")[index];
          row?.querySelector("th").setAttribute("aria-pressed", String(u.series[index].show));
        }],
      },
    };
    const plot = new uPlot(options, [x, ...tracks.map(track => track.values)], root);
    root.insertBefore(hint, plot.root);
    root.querySelector(".still").remove();
    reset.addEventListener("click", () => plot.setScale("x", whole));
    // Names are buttons for those who have no mouse.
    root.querySelectorAll(".u-series th").forEach((name, place) => {
      if (place === 0) return;
      name.tabIndex = 0;
      name.setAttribute("role", "button");
      name.setAttribute("aria-pressed", "true");
      name.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); name.click(); }
      });
    });
    new ResizeObserver(() => {
      const width = Math.max(280, root.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height });
    }).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      plot.redraw(true, true);
      root.querySelectorAll(".u-series").forEach((row, place) => {
        const marker = row.querySelector(".u-marker");
        if (place > 0 && marker) marker.style.background = colour("hue-" + tracks[place - 1].hue);
      });
    });
  };

  document.querySelectorAll(".timeline").forEach(start);
  performance.mark("timelines drawn");
})();
