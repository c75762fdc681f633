// Attention on texts: the reader's choice of block, head, scale and asking token, put into the colors and numbers of the
// tokens that are in the page already.
"use strict";
document.querySelectorAll(".maps").forEach(maps => {
  const steps = 16;
  const data = JSON.parse(maps.querySelector("script.maps-data").textContent);
  const choice = name => maps.querySelector(`.controls .${name}`);
  const [block_choice, head_choice, scale_choice, numbers] = ["block", "head", "scale", "numbers"].map(choice);

  // 16 bits each, least byte first, as written; looked at when first needed.
  const unpacked = model => {
    if (!model.values) {
      const bytes = atob(model.p);
      model.values = new Float32Array(bytes.length / 2);
      for (let i = 0; i < model.values.length; ++i)
        model.values[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
      delete model.p;
    }
    return model.values;
  };

  // The row of token `query`, or null where this model has no such block, head or row.
  function row_of(model, tokens, query) {
    const wanted_block = Number(block_choice.value), wanted_head = Number(head_choice.value);
    const block = wanted_block < 0 ? model.blocks - 1 : wanted_block;
    if (block >= model.blocks || wanted_head >= model.heads || query >= model.rows) return null;
    const heads = wanted_head < 0 ? [...Array(model.heads).keys()] : [wanted_head];
    const values = unpacked(model), row = new Array(tokens).fill(0);
    for (const head of heads) {
      const begin = ((block * model.heads + head) * model.rows + query) * tokens;
      for (let t = 0; t < tokens; ++t) row[t] += values[begin + t] / heads.length;
    }
    return row;
  }

  const in_range = row => {
    const least = Math.min(...row), most = Math.max(...row);
    return row.map(p => most > least ? (p - least) / (most - least) : 0);
  };
  const digits = (p, count) => p > 0 && p < 0.5 * 10 ** -count ? `<${(10 ** -count).toFixed(count)}` : p.toFixed(count);

  const texts = data.texts.map((text, i) => {
    const item = maps.querySelectorAll(".texts > li")[i];
    const views = [...item.querySelectorAll(".model")].map((place, m) => ({
      model: text.models[m], tokens: [...place.querySelectorAll(".token")], readout: place.querySelector(".readout"),
      row: null, shown: null,
    }));
    return { ...text, views, query: 0 };
  });

  const name = (text, t) => text.tokens[t] + (text.marked.includes(t) ? ` (${data.marked})` : "");

  function summary(text, view) {
    if (!view.row) return view.model.rows > text.query ? "This model has no such block or head." :
      "The page holds the row of the first token alone: the text is long.";
    const order = [...view.row.keys()].sort((a, b) => view.row[b] - view.row[a]).slice(0, 3);
    return `${text.tokens[text.query]} attends to ` + order.map(t => `${name(text, t)} ${digits(view.row[t], 3)}`).join(", ");
  }
  function details(text, view, t) {
    if (!view.row) return summary(text, view);
    const rank = 1 + view.row.filter(p => p > view.row[t]).length;
    return `${text.tokens[text.query]} → ${name(text, t)}: probability ${digits(view.row[t], 4)}, ` +
      `${in_range(view.row)[t].toFixed(3)} within the row, rank ${rank} of ${view.row.length}`;
  }

  function show(text) {
    for (const view of text.views) {
      view.row = row_of(view.model, text.tokens.length, text.query);
      view.shown = view.row && (scale_choice.value === "raw" ? view.row : in_range(view.row));
      view.tokens.forEach((token, t) => {
        const value = view.shown ? Math.min(view.shown[t], 1) : 0;
        token.className = token.className.replace(/heat-\d+/, `heat-${Math.round(value * (steps - 1))}`);
        token.classList.toggle("nothing", !view.shown);
        token.lastChild.textContent = view.shown ? digits(view.shown[t], 2) : "–";
        token.title = `${name(text, t)} ${view.shown ? digits(view.shown[t], 3) : "–"}`;
        token.setAttribute("aria-label", token.title);
        token.setAttribute("aria-pressed", String(t === text.query));
      });
      view.readout.textContent = summary(text, view);
    }
  }
  const show_all = () => texts.forEach(show);

  for (const text of texts)
    for (const view of text.views) {
      const focus = t => { // one stop of the Tab key for each text and model, arrows within
        view.tokens.forEach((token, i) => { token.tabIndex = i === t ? 0 : -1; });
        view.tokens[t].focus();
      };
      view.tokens.forEach((token, t) => {
        token.addEventListener("click", () => {
          text.query = text.query === t ? 0 : t;
          show(text);
          view.readout.textContent = details(text, view, t);
        });
        const tell = () => { view.readout.textContent = details(text, view, t); };
        const rest = () => { view.readout.textContent = summary(text, view); };
        token.addEventListener("mouseenter", tell);
        token.addEventListener("mouseleave", rest);
        token.addEventListener("focus", tell);
        token.addEventListener("blur", rest);
        token.addEventListener("keydown", event => {
          const last = view.tokens.length - 1;
          const to = { ArrowRight: Math.min(t + 1, last), ArrowLeft: Math.max(t - 1, 0), Home: 0, End: last }[event.key];
          if (event.key === "Escape" && text.query !== 0) {
            text.query = 0;
            show(text);
          } else if (to !== undefined) {
            event.preventDefault();
            focus(to);
          }
        });
      });
    }
  for (const control of [block_choice, head_choice, scale_choice]) control.addEventListener("change", show_all);
  numbers.addEventListener("change", () => maps.classList.toggle("without-numbers", !numbers.checked));
  // A browser may have kept what was chosen before the page was loaded again.
  maps.classList.toggle("without-numbers", !numbers.checked);
  show_all();
});
