"use strict";
// A page in one file has each picture once: rows show those of the records below.
for (const copy of document.querySelectorAll("[data-copy]")) {
  copy.src = document.getElementById(copy.dataset.copy).src;
}
// Film strips: the slider shows one frame of each, and marks its place in the plots.
for (const film of document.querySelectorAll(".film")) {
  const slider = film.querySelector("input");
  slider.addEventListener("input", () => {
    const step = slider.valueAsNumber;
    for (const strip of film.querySelectorAll(".strip")) {
      [...strip.children].forEach((frame, i) => { frame.hidden = i !== step; });
    }
    for (const line of film.querySelectorAll(".now")) {
      line.setAttribute("x1", step);
      line.setAttribute("x2", step);
    }
    film.querySelector("output").textContent = `${step + 1} of ${Number(slider.max) + 1}`;
  });
}
// Keys: arrows or j and k move over rows and tiles, Enter opens one, n and p turn pages, g goes to
// the grid and back, / searches. A key that finds nothing to do is left to the browser: arrows
// scroll a page without rows.
const rows = [...document.querySelectorAll(".records tbody tr, .grid li")];
let at = -1;
function move(step) {
  const shown = rows.filter((row) => !row.hidden && (row.checkVisibility?.() ?? true));
  if (!shown.length) return false;
  const from = shown.indexOf(rows[at]);
  const next = from < 0 ? 0 : from + step;
  rows[at]?.classList.remove("on");
  at = rows.indexOf(shown[Math.max(0, Math.min(shown.length - 1, next))]);
  rows[at].classList.add("on");
  rows[at].querySelector("a")?.focus({ preventScroll: true });
  rows[at].scrollIntoView({ block: "nearest" });
  return true;
}
// How many tiles of a grid are side by side; of rows, one.
function line() {
  if (!rows[Math.max(at, 0)]?.matches(".grid li")) return 1;
  return rows.filter((row) => row.offsetTop === rows[Math.max(at, 0)].offsetTop).length;
}
function act(element, method) {
  element?.[method]();
  return Boolean(element);
}
function find(selector) { return document.querySelector(selector); }
const keys = {
  ArrowDown: () => move(line()), j: () => move(1), ArrowUp: () => move(-line()), k: () => move(-1),
  ArrowRight: () => line() > 1 && move(1), ArrowLeft: () => line() > 1 && move(-1),
  g: () => act(find(".toggle a"), "click"),
  Enter: () => act(rows[at]?.querySelector("a"), "click"),
  n: () => act(find("a[rel=next]"), "click"),
  p: () => act(find("a[rel=prev]"), "click"),
  Escape: () => act(find("a[rel=up]"), "click"),
  "/": () => act(find("input[type=search]"), "focus"),
};
document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, select, button, audio, a");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (inField && !(event.target.matches("a") && event.key !== "Enter")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (Object.hasOwn(keys, event.key) && keys[event.key]()) event.preventDefault();
});
// A page in one file: the search hides the rows without the text.
const search = document.querySelector("input[data-rows]");
search?.addEventListener("input", () => {
  const wanted = search.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
// Searches and checks go on: their texts are kept up to date, and a page that has more to show is
// loaded again, unless somebody types.
const growing = document.querySelectorAll("[data-rows-now]");
async function update() {
  const answer = await fetch(`status${location.search}`).catch(() => null);
  if (!answer?.ok) return; // the server has ended
  const told = await answer.json();
  for (const part of document.querySelectorAll("[data-status]")) {
    part.textContent = told[part.dataset.status];
  }
  const search = find("[data-status=search][data-rows-now]");
  const isFull = search && (told.rows > Number(search.dataset.rowsNow) || !told.searching);
  const isChecked = location.search.includes("view=damage") && !told.running;
  const isTyping = document.activeElement.matches("input, select");
  if ((isFull || isChecked) && !isTyping) location.reload();
  else if (told.running || isFull) setTimeout(update, 500);
}
if (growing.length) setTimeout(update, 300);
