// The colour scheme: that of the system, unless one is selected; set before the first paint.
{
  const key = "bellnet-theme";
  let saved = null;
  try {
    saved = localStorage.getItem(key);
  } catch {
    // Some browsers have no storage for local files.
  }
  if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
  document.addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("theme");
    const current = document.documentElement.dataset.theme ?? "system";
    choice.querySelector(`[value=${current}]`).checked = true;
    choice.addEventListener("change", ({ target }) => {
      if (target.value === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = target.value;
      try {
        localStorage.setItem(key, target.value);
      } catch {
        // as above
      }
    });
  });
}
