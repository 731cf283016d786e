// SPDX-License-Identifier: Apache-2.0
// What test_html_page.py asks of a page in the browser: an object of functions, each with what is wrong as its answer.
({
	// Texts whose contrast with what is behind them is below WCAG's 4.5.
	contrast() {
		const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		const rgba = color => {
			canvas.clearRect(0, 0, 1, 1);
			canvas.fillStyle = color;
			canvas.fillRect(0, 0, 1, 1);
			const d = canvas.getImageData(0, 0, 1, 1).data;
			return [d[0], d[1], d[2], d[3] / 255];
		};
		const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
		const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
		const behind = e => {
			for (; e; e = e.parentElement) {
				const c = rgba(getComputedStyle(e).backgroundColor);
				if (c[3] > 0.5) return c;
			}
			return [255, 255, 255, 1];
		};
		const low = [];
		for (const e of document.querySelectorAll("body *")) {
			const has_text = [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
			if (!has_text || !e.checkVisibility() || e.closest("script, noscript")) continue;
			const svg = e.closest("svg"), style = getComputedStyle(e);
			const [a, b] = [light(rgba(svg ? style.fill : style.color)), light(behind(svg ? svg.parentElement : e))];
			const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			if (ratio < 4.5) low.push(`${e.tagName}: ${e.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`);
		}
		return low;
	},

	// What a screen reader would have no name for.
	nameless() {
		const asked = "button, input, [role=slider], [role=tree], [role=region], table, section";
		return [...document.querySelectorAll(asked)].filter(e => {
			const by = e.getAttribute("aria-labelledby");
			return !(e.getAttribute("aria-label") || (by && document.getElementById(by)?.textContent) || e.labels?.length ||
				e.caption?.textContent || (e.tagName === "BUTTON" && e.textContent.trim()));
		}).map(e => e.outerHTML.slice(0, 80));
	},

	// What stands out of the window's right edge, but for what scrolls or is cut in its own box.
	outside() {
		const edge = document.documentElement.clientWidth + 1;
		return [...document.querySelectorAll("#page *")].filter(e => e.checkVisibility() &&
			!e.closest(".scroll, .trow, svg, .hidden, .side") && e.getBoundingClientRect().right > edge).map(e => e.className);
	},

	// What the policy lets through.
	async allowed() {
		const refused = new Set();
		document.addEventListener("securitypolicyviolation", e => refused.add(e.effectiveDirective));
		await new Promise(done => setTimeout(done)); // out of the debugger's own evaluation, which may eval
		try {
			new Function("return 1")();
		} catch {
			refused.add("eval");
		}
		await fetch("http://127.0.0.1:9/").catch(() => {});
		const image = document.body.appendChild(document.createElement("img"));
		image.src = "http://127.0.0.1:9/x";
		await new Promise(done => setTimeout(done, 300));
		return ["eval", "connect-src", "img-src"].filter(name => !refused.has(name));
	},

	boxes: selector => [...document.querySelectorAll(selector)].map(e => e.getBoundingClientRect().toJSON()),
})
