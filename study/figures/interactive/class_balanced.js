function classBalanced(figure, { counts, shown, majority, others, powers, least }) {
  const find = (selector) => figure.querySelector(selector);
  const [power, place] = figure.querySelectorAll("input");

  function numbers(excess, minority) {
    const raw = [majority, minority].map((n) => excess / Math.expm1(n * Math.log1p(excess)));
    const scale = (majority + minority) / (majority * raw[0] + minority * raw[1]);
    const [common, rare] = raw.map((weight) => scale * weight);
    const total = others * common + rare;
    return {
      "majority-weight": common,
      "minority-weight": rare,
      "majority-size": common * majority,
      "minority-size": rare * minority,
      "total": total,
      "raw-total": total / scale,
      "worth": total ** 2 / (others * common ** 2 + rare ** 2),
    };
  }

  function show() {
    const excess = -(10 ** -power.value);
    const minority = counts[place.value];
    const values = numbers(excess, minority);
    const beta = (1 + excess).toFixed(powers);
    for (const [name, [digits, low, high]] of Object.entries(shown)) {
      find(`b.${name}`).textContent = values[name].toFixed(digits);
      const x = 100 * (Math.log10(values[name]) - low) / (high - low);
      find(`.mark.${name}`).setAttribute("x", `${x}%`);
    }
    find(".beta").textContent = beta;
    find(".minority-count").textContent = minority;
    find(".verdict").textContent = values["raw-total"] < least ? "refuses" : "accepts";
    power.setAttribute("aria-valuetext", `beta ${beta}`);
    place.setAttribute("aria-valuetext", `${minority} minority samples`);
  }

  for (const input of [power, place]) input.addEventListener("input", show);
  find(".control").hidden = false;
  show();
}
