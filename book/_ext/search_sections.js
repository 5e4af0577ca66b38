// Below each page that the search finds: its sections that have all the words, as links.
document.addEventListener("DOMContentLoaded", () => {
  const terms = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().match(/\S+/g) ?? [];
  const has = (section) => {
    const copy = section.cloneNode(true);
    copy.querySelectorAll("section, script, .headerlink").forEach((part) => part.remove());
    const text = copy.textContent.toLowerCase();
    return terms.every((term) => text.includes(term));
  };
  const link = (page, section) => {
    const entry = document.createElement("li");
    const anchor = entry.appendChild(document.createElement("a"));
    anchor.href = `${page}#${section.id}`;
    anchor.textContent = section.querySelector("h2, h3").textContent.replace("#", "");
    return entry;
  };
  const extend = async (result) => {
    const page = result.querySelector("a").getAttribute("href").split("?")[0];
    result.dataset.extended = "";
    if (page.includes("#")) return;
    const response = await fetch(page).catch(() => null); // not from disk
    if (!response?.ok) return;
    const html = new DOMParser().parseFromString(await response.text(), "text/html");
    const sections = [...html.querySelectorAll("article section section[id]")].filter(has);
    if (!sections.length) return;
    const list = document.createElement("ul");
    list.className = "sections";
    list.append(...sections.map((section) => link(page, section)));
    result.append(list);
  };
  const results = document.querySelector("#search-results");
  new MutationObserver(() => {
    results.querySelectorAll("ul.search > li:not([data-extended])").forEach(extend);
  }).observe(results, { childList: true, subtree: true });
});
