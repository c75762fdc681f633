// Attention on images: the reader's choice of block, head and scale, put into the pictures that are in the page already,
// and the numbers of the patch under the mouse or the keyboard.
"use strict";
document.querySelectorAll(".patch-maps").forEach(maps => {
  const darkest = 204; // as patch_maps.cpp
  const data = JSON.parse(maps.querySelector("script.maps-data").textContent);
  const scale_choice = maps.querySelector(".controls .scale"), beneath = maps.querySelector(".controls .beneath");

  // 16 bits each, least byte first, as written.
  const unpacked = text => {
    const bytes = atob(text), values = new Float32Array(bytes.length / 2);
    for (let i = 0; i < values.length; ++i)
      values[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
    return values;
  };

  // What the class token pays to itself, then to the patches; the mean over heads for head -1.
  function row_of(model, block, head) {
    const tokens = 1 + model.side * model.side, row = new Array(tokens).fill(0);
    const heads = head < 0 ? [...Array(model.heads).keys()] : [head];
    for (const h of heads)
      for (let t = 0; t < tokens; ++t) row[t] += model.values[(block * model.heads + h) * tokens + t] / heads.length;
    return row;
  }
  const top_of = row => Math.max(...row.slice(1));

  const percent = share => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
  const place = (patch, side) => `row ${Math.floor(patch / side) + 1}, column ${patch % side + 1}`;
  const map_name = (block, head) => `block ${block + 1}, ${head < 0 ? "mean over heads" : `head ${head + 1}`}`;

  // As spread_text() of patch_maps.cpp.
  function summary(row, side) {
    const sum = row.slice(1).reduce((a, b) => a + b, 0), count = row.length - 1;
    if (!(sum > 0)) return "The class token pays all its attention to itself.";
    const shares = row.slice(1).map(p => p / sum), most = Math.max(...shares);
    const squares = shares.reduce((total, s) => total + s * s, 0);
    const entropy = shares.reduce((total, s) => total - (s > 0 ? s * Math.log(s) : 0), 0);
    return `Top patch (${place(shares.indexOf(most), side)}): ${percent(most)} of the attention to patches; ` +
      `${percent(1 / count)} would be even. Spread over ${(1 / squares).toFixed(1)} of ${count} patches, entropy ` +
      `${entropy.toFixed(2)} of ${Math.log(count).toFixed(2)}. The class token pays ${percent(row[0])} to itself.`;
  }

  const canvas = document.createElement("canvas");
  function paint(picture, row, side, most) {
    canvas.width = canvas.height = side;
    const context = canvas.getContext("2d"), pixels = context.createImageData(side, side);
    for (let i = 0; i < side * side; ++i)
      pixels.data[4 * i + 3] = Math.round(darkest * (most > 0 ? 1 - row[i + 1] / most : 1));
    context.putImageData(pixels, 0, 0);
    picture.querySelector(".shade").src = canvas.toDataURL();
    const patch = row.indexOf(top_of(row), 1) - 1, top = picture.querySelector(".top").style;
    top.left = `${100 / side * (patch % side)}%`;
    top.top = `${100 / side * Math.floor(patch / side)}%`;
  }

  const images = data.images.map((image, i) => {
    const item = maps.querySelectorAll(".texts > li")[i];
    return [...item.querySelectorAll(".model")].map((element, m) => {
      const model = { ...image.models[m], values: unpacked(image.models[m].p) };
      return {
        model, block: model.blocks - 1, head: -1, row: row_of(model, model.blocks - 1, -1), looked_at: -1,
        chosen: element.querySelector(".chosen"), readout: element.querySelector(".readout"),
        buttons: [...element.querySelectorAll(".patch-map")].map(button => ({
          button, block: Number(button.dataset.block), head: Number(button.dataset.head),
          row: row_of(model, Number(button.dataset.block), Number(button.dataset.head)),
        })),
      };
    });
  });
  const common = views => scale_choice.value === "own" ? null :
    Math.max(...views.flatMap(view => view.buttons.map(one => top_of(one.row))));

  function show(view, most) {
    paint(view.chosen.querySelector(".picture"), view.row, view.model.side, most ?? top_of(view.row));
    view.chosen.querySelector("p").textContent = map_name(view.block, view.head);
    view.readout.textContent = summary(view.row, view.model.side);
    for (const one of view.buttons)
      one.button.setAttribute("aria-pressed", String(one.block === view.block && one.head === view.head));
  }
  function show_all() {
    for (const views of images) {
      const most = common(views);
      for (const view of views) {
        for (const one of view.buttons)
          paint(one.button.querySelector(".picture"), one.row, view.model.side, most ?? top_of(one.row));
        show(view, most);
      }
    }
  }

  // The patch under the mouse or the keyboard, framed and in numbers.
  function look_at(view, patch) {
    view.looked_at = patch;
    let frame = view.chosen.querySelector(".looked-at");
    if (patch < 0) {
      frame?.remove();
      view.readout.textContent = summary(view.row, view.model.side);
      return;
    }
    const side = view.model.side, rank = 1 + view.row.slice(1).filter(p => p > view.row[patch + 1]).length;
    if (!frame) {
      frame = document.createElement("i");
      frame.className = "looked-at";
      view.chosen.querySelector(".picture").append(frame);
    }
    Object.assign(frame.style, { left: `${100 / side * (patch % side)}%`, top: `${100 / side * Math.floor(patch / side)}%`,
      width: `${100 / side}%`, height: `${100 / side}%` });
    view.readout.textContent = `Patch ${place(patch, side)}: probability ${view.row[patch + 1].toFixed(4)}, ` +
      `${(view.row[patch + 1] * side * side).toFixed(2)} times an even share, rank ${rank} of ${side * side}`;
  }

  for (const views of images)
    for (const view of views) {
      for (const { button, block, head } of view.buttons)
        button.addEventListener("click", () => { // the same map of all networks that have it
          for (const other of views) {
            if (block >= other.model.blocks || head >= other.model.heads) continue;
            Object.assign(other, { block, head, row: row_of(other.model, block, head) });
            look_at(other, -1);
            show(other, common(views));
          }
        });
      const side = view.model.side, picture = view.chosen.querySelector(".picture");
      picture.addEventListener("mousemove", event => {
        const box = picture.getBoundingClientRect();
        const at = (from, begin, length) => Math.min(side - 1, Math.max(0, Math.floor((from - begin) / length * side)));
        look_at(view, at(event.clientY, box.top, box.height) * side + at(event.clientX, box.left, box.width));
      });
      picture.addEventListener("mouseleave", () => look_at(view, -1));
      view.chosen.addEventListener("blur", () => look_at(view, -1));
      view.chosen.addEventListener("keydown", event => {
        const now = view.looked_at < 0 ? view.row.indexOf(top_of(view.row), 1) - 1 : view.looked_at;
        const steps = { ArrowRight: now % side < side - 1 ? 1 : 0, ArrowLeft: now % side > 0 ? -1 : 0,
          ArrowDown: now + side < side * side ? side : 0, ArrowUp: now >= side ? -side : 0 };
        if (event.key === "Escape") look_at(view, -1);
        else if (event.key in steps) {
          event.preventDefault();
          look_at(view, view.looked_at < 0 ? now : now + steps[event.key]); // at first the top patch
        }
      });
    }
  scale_choice.addEventListener("change", show_all);
  const put_beneath = () => { maps.dataset.beneath = beneath.value; };
  beneath.addEventListener("change", put_beneath);
  // A browser may have kept what was chosen before the page was loaded again.
  put_beneath();
  if (scale_choice.value !== "own") show_all();
});
