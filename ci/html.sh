#!/usr/bin/env bash
# Opens the pages of a report and of a heap profile in Chromium: the pages of the tests' samples, light and dark, with
# scripts and without. No script may fail, no page may refer to another machine, and the filter, the flame graphs, the
# charts and the tabs must work. Pages and pictures go to $CARGO_TARGET_DIR/html. Passes if there is no Chromium.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup html

command -v chromium >/dev/null || { say "skipped: there is no Chromium, and it cannot be installed"; exit 0; }

pages=$CARGO_TARGET_DIR/html
rm -rf "$pages"
mkdir -p "$pages"
HEAPWRIGHT_SAMPLES=$pages cargo test --quiet --locked -p heapwright-cli --bin heapwright \
    output::tests::written_as_pages -- --exact --ignored >"$SCRATCH/test" 2>&1 ||
    { cat "$SCRATCH/test" >&2; die "the sample pages are not made"; }

status=0
check() { # WHAT COMMAND...
    if "${@:2}"; then say "ok   $1"; else say "FAIL $1"; status=1; fi
}
lacks() { ! grep -qE "$1" "${@:2}"; }

# browser FLAGS... PAGE: opens the page. The output of its scripts goes to $SCRATCH/said.
browser() {
    local page=${*: -1}
    timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$(mktemp -d "$SCRATCH/profile.XXXXXX")" \
        --window-size=1400,2600 --enable-logging=stderr "${@:1:$#-1}" "file://$page" \
        2>"$SCRATCH/stderr"
    grep CONSOLE "$SCRATCH/stderr" >"$SCRATCH/said" || true
}

page=$pages/report.html
profile=$pages/profile.html
for one in "$page" "$profile"; do
    check "the ${one##*/} page refers to nothing outside of it" \
        lacks '(src|href|action|data|poster)="?(https?:|//)|@import|url\(' "$one"
    check "what the program is called is text in ${one##*/}" \
        lacks '<script>alert|<b>hi|<i>#1' "$one"
done

browser --dump-dom "$page" >"$pages/dom.html"
check "no script complains" test ! -s "$SCRATCH/said"
for part in 'class="scripted"' 'class="readout"><span[^>]*><b>all</b>' '6 errors, 1.2 MiB definitely lost' \
    'class="card error" open=""' 'class="box definite[^>]* role="button"' 'class="cursor"' \
    'cache\+0x10 in shop server' 'class="spark"' 'class="use"' 'glib.s quarks'; do
    check "the page has $part" grep -qE "$part" "$pages/dom.html"
done

# used PAGE FLAGS...: the script on stdin uses the page, and writes its result into the title. $said is that result.
used() {
    { cat "$1"; cat; } >"$SCRATCH/used.html"
    browser --dump-dom "${@:2}" "$SCRATCH/used.html" >"$SCRATCH/used"
    # (Boxes of a graph have titles, too.)
    said=$(grep -o '<title>{.*}</title>' "$SCRATCH/used" | head -n 1 || true)
    say "     $said"
}
used "$page" <<'END'
<script>
addEventListener("load", () => {
  const all = (what) => [...document.querySelectorAll(what)];
  const shown = () => all(".card").filter((card) => !card.hidden).length;
  const said = { cards: shown() };
  const filter = document.querySelector("#filter");
  const type = (text) => { filter.value = text; filter.dispatchEvent(new Event("input")); };
  type("HEADER_new");
  said.filtered = shown();
  said.hits = all(".box.hit").length;
  type("no such thing");
  said.none = shown();
  type("");
  document.querySelector("input[data-fate=reachable]").click();
  said.lost = shown();
  document.querySelector("input[data-fate=reachable]").click();
  document.querySelector("#fold").click();
  said.closed = all(".card:not([open])").length;
  const drawn = () => all(".box").filter((box) => box.style.display !== "none");
  said.boxes = drawn().length;
  const session = all(".box").find((box) => box.textContent.startsWith("Session::open"));
  session.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  said.zoomed = drawn().length;
  said.width = session.getAttribute("width");
  said.told = document.querySelector(".readout span").textContent;
  document.querySelector(".readout button").click();
  said.back = drawn().length === said.boxes;
  drawn()[0].focus();
  drawn()[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  said.focus = document.activeElement.dataset.depth;
  const plot = document.querySelector(".plot"), frame = plot.getBoundingClientRect();
  plot.dispatchEvent(new PointerEvent("pointermove", { clientX: frame.left + frame.width / 2, bubbles: true }));
  said.cursor = plot.querySelector(".cursor b").textContent;
  document.title = JSON.stringify(said);
});
</script>
END
check "no script complains when it is used" test ! -s "$SCRATCH/said"
for part in '"cards":11' '"filtered":2' '"hits":1' '"none":0' '"lost":8' '"closed":0' '"zoomed":7' \
    '"width":"100%"' 'Session::open.1.2 MiB in 155 blocks, 15.6 %' '"back":true' '"focus":"1"' \
    '"cursor":"5.7 MiB in 190 blocks at 30.00 s"'; do
    check "used, it says $part" grep -qE "$part" <<<"$said"
done

# The profile's page: one tab at a time, by mouse and by keys.
used "$profile" --virtual-time-budget=2000 <<'END'
<script>
addEventListener("load", () => {
  const all = (what) => [...document.querySelectorAll(what)];
  const shown = () => all(".panel").filter((panel) => panel.offsetHeight > 0).map((panel) => panel.id).join();
  const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const said = { first: shown() };
  document.querySelector("#tab-peak").click();
  said.clicked = shown();
  document.querySelector("#tab-peak").focus();
  key("ArrowRight");
  said.right = shown();
  key("ArrowRight");
  said.around = shown();
  key("End");
  said.end = shown();
  said.focus = document.activeElement.id;
  said.stops = all("[role=tab][tabindex='0']").length;
  said.roles = all("[role=tabpanel][aria-labelledby]").length;
  // A graph that was hidden has its names once it is shown.
  said.names = all("#allocated .box text").filter((text) => text.style.display !== "none").length > 3;
  const filter = document.querySelector("#filter");
  filter.value = "Cache::insert";
  filter.dispatchEvent(new Event("input"));
  said.filtered = document.querySelector("#matches").textContent;
  filter.value = "";
  filter.dispatchEvent(new Event("input"));
  location.hash = "#growth";
  addEventListener("hashchange", () => {
    said.linked = shown();
    const plot = document.querySelector(".plot"), frame = plot.getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent("pointermove", { clientX: frame.left + frame.width / 2, bubbles: true }));
    said.cursor = plot.querySelector(".cursor b").textContent;
    document.title = JSON.stringify(said);
  });
});
</script>
END
check "no script complains when the profile is used" test ! -s "$SCRATCH/said"
for part in '"first":"live"' '"clicked":"peak"' '"right":"allocated"' '"around":"live"' \
    '"end":"allocated"' '"focus":"tab-allocated"' '"stops":1' '"roles":5' '"names":true' \
    '"filtered":"1 of 5"' '"linked":"growth"' \
    '"cursor":"28.8 MiB live, 60.0 MiB resident at 30.00 s"'; do
    check "the profile, used, says $part" grep -qF "$part" <<<"$said"
done

# A page's picture must be much larger than an empty page's.
printf '<!doctype html><title>empty</title>' >"$SCRATCH/empty.html"
browser --screenshot="$SCRATCH/empty.png" "$SCRATCH/empty.html"
empty=$(stat -c %s "$SCRATCH/empty.png")
sed '/^<script>$/,/^<\/script>$/d' "$page" >"$pages/plain.html"
sed '/^<script>$/,/^<\/script>$/d' "$profile" >"$pages/plain-profile.html"
check "the plain pages have no script" lacks '<script' "$pages/plain.html" "$pages/plain-profile.html"
check "without scripts all figures are shown" lacks 'class="panel[^>]*hidden' "$pages/plain-profile.html"
picture() { # LOOK PAGE FLAGS...
    browser "${@:3}" --screenshot="$pages/$1.png" "$2"
    check "the $1 page is a picture" test "$(stat -c %s "$pages/$1.png")" -gt $((10 * empty))
}
picture light "$page"
picture dark "$page" --blink-settings=preferredColorScheme=0
picture plain "$pages/plain.html"
picture profile "$profile"
picture profile-dark "$profile" --blink-settings=preferredColorScheme=0
picture profile-narrow "$profile" --window-size=500,2600
picture profile-plain "$pages/plain-profile.html"
differ() { test "$(cksum <"$pages/$1.png")" != "$(cksum <"$pages/$2.png")"; }
check "light and dark differ" differ light dark
check "light and dark profiles differ" differ profile profile-dark
check "a profile without scripts shows more" differ profile profile-plain
exit $status
