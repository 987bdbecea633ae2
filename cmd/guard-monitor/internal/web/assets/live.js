// Keeps an open page up to date without losing the reader's place. The server
// says that something is new; this fetches the same page and replaces the parts
// marked data-live that differ. The page is whole without it.
(() => {
  "use strict";
  const root = document.documentElement;
  const base = root.dataset.base;
  const badge = document.getElementById("live");
  const more = document.getElementById("more");
  const least = 2000; // ms between two fetches
  const calm = 30000; // ms after which a page is fetched anyway: ages and health go on

  // Relative times.
  const units = [["day", 172800, 86400], ["hour", 7200, 3600], ["minute", 120, 60], ["second", 0, 1]];
  const words = new Intl.RelativeTimeFormat(root.lang, { numeric: "always", style: "short" });
  const tell = () => {
    for (const el of document.querySelectorAll("[data-ago]")) {
      const s = (Date.parse(el.dataset.ago) - Date.now()) / 1000;
      const [unit, , size] = units.find(([, from]) => Math.abs(s) >= from);
      const text = words.format(Math.trunc(s / size), unit);
      if (el.textContent !== text) el.textContent = text;
    }
  };
  setInterval(tell, 1000);
  tell();

  // On a phone the pages' names are wider than the screen.
  const here = document.querySelector("nav [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;

  // Not every page may be fetched again, such as the answer to a form.
  if ("still" in root.dataset) return;

  // The badge.
  let since = null;
  const on = () => {
    since = null;
    badge.className = "live on";
    badge.textContent = badge.dataset.text;
  };
  const off = () => {
    since = since || new Date();
    badge.className = "live off";
    badge.textContent = badge.dataset.stale.replace("%s", since.toLocaleTimeString(root.lang));
  };

  // Whoever reads or fills in a part must not have it taken away.
  const busy = (part) => {
    const active = document.activeElement;
    if (part.contains(active) && active !== part) return true;
    if (part.querySelector("input:checked")) return true;
    const chosen = getSelection();
    if (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode)) return true;
    return part.dataset.live === "list" && part.getBoundingClientRect().top < -40;
  };
  const plain = (part) => {
    const copy = part.cloneNode(true);
    for (const el of copy.querySelectorAll("[data-ago]")) el.textContent = "";
    return copy.className + copy.innerHTML;
  };
  let waiting = null;
  const put = (fresh, force) => {
    let left = 0;
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (!next || plain(part) === plain(next)) continue;
      if (!force && busy(part)) {
        left++;
        continue;
      }
      const places = [...part.querySelectorAll(".scroll")].map((el) => el.scrollLeft);
      part.className = next.className;
      part.replaceChildren(...next.cloneNode(true).childNodes); // next may be asked for again
      part.querySelectorAll(".scroll").forEach((el, i) => { el.scrollLeft = places[i] || 0; });
    }
    more.hidden = left === 0;
    waiting = left ? fresh : null;
    tell();
  };
  more.addEventListener("click", () => {
    if (waiting) put(waiting, true);
    window.scrollTo({ top: 0 });
    document.getElementById("main").focus();
  });

  // Fetching, one at a time and not too often.
  let last = 0, timer = 0, running = false, again = false;
  const fetchNow = async () => {
    timer = 0;
    if (document.hidden) return;
    running = true;
    last = Date.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      const html = await answer.text();
      if (!answer.ok && answer.status !== 503) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(html, "text/html");
      if (answer.ok) {
        // The layout of some pages changes as a whole: then begin anew.
        const ids = (d) => [...d.querySelectorAll("[data-live]")].map((el) => el.id).join();
        if (ids(fresh) !== ids(document) && !document.querySelector("details[open] form") && window.scrollY < 100) {
          location.reload();
          return;
        }
      }
      put(fresh, false);
      if (answer.ok && source && source.readyState === EventSource.OPEN) on();
    } catch {
      off();
    }
    running = false;
    if (again) soon();
  };
  const soon = () => {
    if (running || timer) { again = running; return; }
    again = false;
    timer = setTimeout(fetchNow, Math.max(0, last + least - Date.now()));
  };

  // A page that nobody sees has no connection: browsers have few for each site.
  let source = null;
  const open = () => {
    source = new EventSource(base + "/live");
    source.addEventListener("open", on);
    source.addEventListener("news", () => { on(); soon(); });
    source.addEventListener("error", off);
  };
  // After an answer that is an error the browser does not come back by itself.
  setInterval(() => {
    if (source && source.readyState === EventSource.CLOSED) open();
    soon();
  }, calm);
  document.addEventListener("visibilitychange", () => {
    if (source) source.close();
    source = null;
    if (!document.hidden) { open(); soon(); }
  });
  window.addEventListener("pagehide", () => { if (source) source.close(); });
  window.addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
  if (!document.hidden) open();
})();
