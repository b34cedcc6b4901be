/*
 * Pages that keep themselves up to date.
 *
 * A page with an element [data-runstore-live="seconds"] is fetched again that often, and every
 * [data-runstore-region="name"] of it that has changed takes the content it has there. Nothing
 * else on the page is touched, and without this script the page is complete as it is.
 */
"use strict";
{
    const PAUSED_KEY = "runstore.live.paused";
    const CALM_MS = 1500;

    /* Whatever a person is in the middle of must not move away under the hand. */
    let lastMoveAt = -Infinity;

    function isBusyWith(region) {
        const selection = document.getSelection();
        if (selection && !selection.isCollapsed && region.contains(selection.anchorNode)) {
            return true;
        }
        if (region.querySelector("input.action-select:checked")) {
            return true;
        }
        const focused = document.activeElement;
        if (region.contains(focused) && focused.matches("input:not([type=checkbox]), select, textarea")) {
            return true;
        }
        return region.matches(":hover") && performance.now() - lastMoveAt < CALM_MS;
    }

    function nameOf(element, among) {
        const said = element.id || element.getAttribute("href") || element.getAttribute("value");
        return said || String(Array.prototype.indexOf.call(among, element));
    }

    function keyed(region, selector) {
        const found = region.querySelectorAll(selector);
        return new Map(Array.from(found, (element) => [nameOf(element, found), element]));
    }

    const FOCUSABLE = "a[href], button, summary, input, [tabindex]";

    /* What the reader has done to the content, and how to do it to other content again. */
    function remember(region) {
        const opened = new Map();
        keyed(region, "details").forEach((element, name) => opened.set(name, element.open));
        const scrolled = new Map();
        keyed(region, ".results, .runstore-scroll, pre").forEach((element, name) =>
            scrolled.set(name, [element.scrollLeft, element.scrollTop]),
        );
        let focused = null;
        keyed(region, FOCUSABLE).forEach((element, name) => {
            if (element === document.activeElement) {
                focused = name;
            }
        });
        return () => {
            keyed(region, "details").forEach((element, name) => {
                if (opened.has(name)) {
                    element.open = opened.get(name);
                }
            });
            keyed(region, ".results, .runstore-scroll, pre").forEach((element, name) => {
                [element.scrollLeft, element.scrollTop] = scrolled.get(name) || [0, 0];
            });
            const target = focused === null ? undefined : keyed(region, FOCUSABLE).get(focused);
            if (target) {
                target.focus({ preventScroll: true });
            }
        };
    }

    /* What a region says; each page has another token for its forms. */
    function textOf(region) {
        return region.innerHTML.replace(/(name="csrfmiddlewaretoken" value=")[^"]*/g, "$1");
    }

    function takeOver(region, fetched) {
        const restore = remember(region);
        region.replaceChildren(...Array.from(fetched.childNodes));
        restore();
        region.dispatchEvent(new CustomEvent("runstore:refreshed", { bubbles: true }));
    }

    /* Django's script holds on to the checkboxes that the page came with; these are others. */
    function selectRows(event) {
        const region = event.currentTarget;
        const boxes = Array.from(region.querySelectorAll("input.action-select"));
        const toggle = document.getElementById("action-toggle");
        if (event.target === toggle) {
            boxes.forEach((box) => {
                box.checked = toggle.checked;
            });
        } else if (!event.target.matches("input.action-select")) {
            return;
        }
        boxes.forEach((box) => box.closest("tr").classList.toggle("selected", box.checked));
        const selected = boxes.filter((box) => box.checked).length;
        if (toggle) {
            toggle.checked = boxes.length > 0 && selected === boxes.length;
        }
        const counter = document.querySelector("span.action-counter");
        if (counter && window.ngettext && window.interpolate) {
            const text = "%(sel)s of %(cnt)s selected";
            const values = { sel: selected, cnt: boxes.length };
            counter.textContent = window.interpolate(window.ngettext(text, text, selected), values, true);
        }
    }

    class Live {
        constructor(bar) {
            this.bar = bar;
            this.intervalMs = Math.max(1, Number(bar.dataset.runstoreLive) || 5) * 1000;
            this.button = bar.querySelector("[data-runstore-live-switch]");
            this.note = bar.querySelector("[data-runstore-live-note]");
            this.isPaused = false;
            this.hasFailed = false;
            this.isFetching = false;
            this.timer = null;
            this.shown = new WeakMap();
            try {
                this.isPaused = window.sessionStorage.getItem(PAUSED_KEY) === "yes";
            } catch {
                // Without storage each page starts anew.
            }
        }

        start() {
            this.bar.hidden = false;
            document.querySelectorAll("[data-runstore-region]").forEach((region) =>
                this.shown.set(region, textOf(region)),
            );
            this.button.addEventListener("click", () => this.toggle());
            document.addEventListener("pointermove", () => {
                lastMoveAt = performance.now();
            }, { passive: true });
            document.addEventListener("visibilitychange", () => this.plan(document.hidden ? null : 0));
            this.show();
            this.plan(this.intervalMs);
        }

        toggle() {
            this.isPaused = this.hasFailed ? false : !this.isPaused;
            this.hasFailed = false;
            try {
                window.sessionStorage.setItem(PAUSED_KEY, this.isPaused ? "yes" : "no");
            } catch {
                // As above.
            }
            this.show();
            this.plan(this.isPaused ? null : 0);
        }

        show() {
            const data = this.bar.dataset;
            const isStopped = this.isPaused || this.hasFailed;
            this.button.textContent = isStopped ? data.resume : data.pause;
            this.note.textContent = this.hasFailed ? data.failed : this.isPaused ? data.paused : data.on;
            this.bar.classList.toggle("runstore-live--failed", this.hasFailed);
            this.bar.classList.toggle("runstore-live--paused", this.isPaused);
        }

        plan(delayMs) {
            window.clearTimeout(this.timer);
            this.timer = null;
            if (delayMs !== null && !this.isPaused && !this.hasFailed && !document.hidden) {
                this.timer = window.setTimeout(() => this.refresh(), delayMs);
            }
        }

        async refresh() {
            if (this.isFetching) {
                return;
            }
            this.isFetching = true;
            try {
                const page = await this.fetchPage();
                if (!this.isPaused) {
                    this.update(page);
                }
            } catch {
                this.hasFailed = true;
                this.show();
            } finally {
                this.isFetching = false;
                this.plan(this.intervalMs);
            }
        }

        async fetchPage() {
            const answer = await fetch(window.location.href, {
                credentials: "same-origin",
                cache: "no-store",
                // Whoever is logged out meanwhile is sent to another page.
                redirect: "error",
                signal: AbortSignal.timeout(30000),
            });
            if (!answer.ok) {
                throw new Error("no page");
            }
            return new DOMParser().parseFromString(await answer.text(), "text/html");
        }

        update(page) {
            document.querySelectorAll("[data-runstore-region]").forEach((region) => {
                const name = CSS.escape(region.dataset.runstoreRegion);
                const fetched = page.querySelector(`[data-runstore-region="${name}"]`);
                if (!fetched || isBusyWith(region)) {
                    return;
                }
                const said = textOf(fetched);
                if (said !== this.shown.get(region)) {
                    this.shown.set(region, said);
                    takeOver(region, fetched);
                    // Adding the same listener again adds none.
                    region.addEventListener("change", selectRows);
                }
            });
            this.beat();
        }

        /* Let the mark on the switch show that something was fetched. */
        beat() {
            this.bar.classList.remove("runstore-live--beat");
            // Reading a measure lets the animation of the class begin anew.
            void this.bar.offsetWidth;
            this.bar.classList.add("runstore-live--beat");
        }
    }

    function ready(start) {
        if (document.readyState === "loading") {
            document.addEventListener("DOMContentLoaded", start);
        } else {
            start();
        }
    }

    ready(() => {
        const bar = document.querySelector("[data-runstore-live]");
        if (bar) {
            new Live(bar).start();
        }
    });
}
