import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sanitize } from "./sanitize.ts";

const ESC = "\x1B";
const BEL = "\x07";

/** All that must not reach a screen: said again in other words than the code's. */
function isUnsafe(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x20) return char !== "\n" && char !== "\t";
  if (code >= 0x7f && code <= 0x9f) return true;
  if (code >= 0xd800 && code <= 0xdfff) return true;
  if (code === 0x2028 || code === 0x2029) return true;
  if (code >= 0x200b && code <= 0x200f) return true;
  if (code >= 0x202a && code <= 0x202e) return true;
  if (code >= 0x2060 && code <= 0x206f) return true;
  if (code >= 0xe0000 && code <= 0xe0fff) return true;
  return [0xad, 0x61c, 0x180e, 0x3164, 0xfeff, 0xfff9, 0xfffa, 0xfffb].includes(code);
}

describe("sanitize", () => {
  it("leaves plain text as it is", () => {
    const text = "Grüße, 世界! 👍❤️\n\tif (a < b) { return `${c}`; } // ␛ שלום";
    expect(sanitize(text)).toBe(text);
    expect(sanitize(text, { exact: true })).toBe(text);
  });

  it.each([
    ["colors", `${ESC}[31mred${ESC}[0m`, "red"],
    ["colors with colons", `${ESC}[38:2::1:2:3mx`, "x"],
    ["cursor moves", `a${ESC}[2K${ESC}[1A${ESC}[?25lb`, "ab"],
    ["8-bit CSI", "a\x9B31mb", "ab"],
    ["a link", `${ESC}]8;;https://evil.test${ESC}\\click${ESC}]8;;${ESC}\\`, "␛click␛"],
    ["the clipboard", `x${ESC}]52;c;cm0gLXJm${BEL}y`, "x␛y"],
    ["8-bit OSC", "x\x9D0;title\x9Cy", "x␛y"],
    ["DCS", `x${ESC}P+q544e${ESC}\\y`, "x␛y"],
    ["APC and PM and SOS", `${ESC}_a${ESC}\\${ESC}^b${ESC}\\${ESC}Xc${ESC}\\`, "␛␛␛"],
    ["an unterminated CSI", `x${ESC}[31`, "x␛[31"],
    ["an unterminated OSC: what follows is seen", `${ESC}]0;x\nrm -rf /`, "␛]0;x\nrm -rf /"],
    ["an OSC inside of an OSC", `${ESC}]0;a${ESC}]0;b${BEL}c`, "␛]0;a␛c"],
    ["a reset", `a${ESC}cb`, "a␛cb"],
    ["a lone ESC", `a${ESC}`, "a␛"],
    ["backspaces", "safe\b\b\b\bevil", "safe␈␈␈␈evil"],
    ["carriage returns", "evil\rgood\r\nline", "evil␍good\nline"],
    ["NUL, BEL, DEL, C1", "\0\x07\x7F\x85", "␀␇␡�"],
    ["bidi", "a\u202Eb\u2066c\u2069d\u200Fe", "abcde"],
    ["zero width", "p\u200Ba\u200Dy\u2060p\uFEFFa\u00ADl", "paypal"],
    ["tags", "hi\u{E0049}\u{E0067}\u{E007F}", "hi"],
    ["variation selectors that carry bytes", "x\u{E0101}\u{E0180}", "x"],
    ["lone surrogates", "a\uD800b\uDC00", "a�b�"],
    ["line separators", "a\u2028b\u2029c", "a\nb\nc"],
    ["a sequence that comes together", `${ESC}\u200B[31m`, "␛[31m"],
  ])("takes away %s", (_, text, expected) => {
    expect(sanitize(text)).toBe(expected);
  });

  it("keeps to one line where it is asked to", () => {
    expect(sanitize("a\nb\r\nc\u2028d\te", { keepNewlines: false })).toBe("a␊b␊c␊d\te");
  });

  it("leaves nothing out where a person decides by it", () => {
    const text = `rm ${ESC}[$(id)m\u202E\u200B\u{E0041}\r\n\x9B\uD800`;
    expect(sanitize(text, { exact: true })).toBe(
      "rm ␛[$(id)m<U+202E><U+200B><U+E0041>␍\n<U+009B><U+D800>",
    );
  });

  const FAMILY = "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}";
  const ASTRONAUT = "\u{1F469}\u{1F3FD}\u200D\u{1F680}";
  const RAINBOW = "\u{1F3F3}\uFE0F\u200D\u{1F308}";
  const ENGLAND = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}";

  it.each([FAMILY, ASTRONAUT, RAINBOW, ENGLAND, `a${FAMILY}${ASTRONAUT}\n${RAINBOW}.`, "🇩🇪👍🏽❤️"])(
    "keeps %s whole where it is asked to, and else only its parts",
    (text) => {
      expect(sanitize(text, { wholeEmoji: true })).toBe(text);
      expect(sanitize(text)).toBe(text.replace(/[\u200D\u{E0020}-\u{E007F}]/gu, ""));
      expect(sanitize(text, { wholeEmoji: true, exact: true })).not.toMatch(/\u200D|\u{E0067}/u);
    },
  );

  it.each([
    ["between letters", "pay\u200Dpal", "paypal"],
    ["behind an emoji", "\u{1F469}\u200D", "\u{1F469}"],
    ["before one", "\u200D\u{1F469}", "\u{1F469}"],
    ["between emoji that are none together", "\u{1F680}\u200D\u{1F469}", "\u{1F680}\u{1F469}"],
    ["more than one", `\u{1F469}\u200D\u200D\u{1F680}`, "\u{1F469}\u{1F680}"],
    ["behind a whole one", `${FAMILY}\u200D`, FAMILY.replaceAll("\u200D", "")],
    ["tags that name no flag", "\u{1F3F4}\u{E0068}\u{E0069}\u{E007F}", "\u{1F3F4}"],
    ["tags behind a letter", "hi\u{E0049}\u{E0067}\u{E007F}", "hi"],
    ["orders of writing in it", "\u{1F469}\u202E\u200D\u{1F680}", "\u{1F469}\u200D\u{1F680}"],
    ["in a title", `x${ESC}]0;${FAMILY}${BEL}y`, "x␛y"],
    ["in a chain", `${FAMILY}\u200D${FAMILY}`, `${FAMILY}${FAMILY}`.replaceAll("\u200D", "")],
  ])("leaves joiners and tags out that make no emoji: %s", (_, text, expected) => {
    expect(sanitize(text, { wholeEmoji: true })).toBe(expected);
  });

  it("keeps nothing invisible but within an emoji, whatever the text is", () => {
    const part = fc.oneof(
      fc.constantFrom(
        "\u200D",
        "\u200D",
        "\uFE0F",
        "\u{1F3FD}",
        "\u{E0067}",
        "\u{E007F}",
        "\u{1F1E9}",
      ),
      fc.constantFrom(
        "\u{1F468}",
        "\u{1F469}",
        "\u{1F467}",
        "\u{1F680}",
        "\u{1F3F4}",
        "\u2764",
        "\u2640",
      ),
      fc.constantFrom(
        FAMILY,
        ASTRONAUT,
        RAINBOW,
        ENGLAND,
        "a",
        "\n",
        "\u0600",
        "\u202E",
        "\u200B",
        "\u0301",
      ),
    );
    const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const clean = sanitize(parts.join(""), { wholeEmoji: true });
        expect(sanitize(clean, { wholeEmoji: true })).toBe(clean);
        expect(sanitize(clean)).toBe(sanitize(parts.join("")));
        for (const { segment } of segmenter.segment(clean)) {
          if (![...segment].some(isUnsafe)) continue;
          expect(segment).toMatch(/^\p{Extended_Pictographic}/u);
          expect(segment).toMatch(
            /\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?$|\u{E007F}$/u,
          );
        }
      }),
      { numRuns: 5_000 },
    );
  });

  const piece = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      ...[ESC, "\x9B", "\x9D", "\x90", "\x9C", BEL, "[", "]", "\\", "31m", "8;;", "P", "\r", "\n"],
      ...["\u202E", "\u200B", "\u{E0041}", "\uD83D", "\uDE00", "\uFE0F", "␛", "x"],
    ),
  );
  const options = fc.record({ keepNewlines: fc.boolean(), exact: fc.boolean() });

  it("gives nothing unsafe, and changes nothing the second time", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), options, (pieces, options) => {
        const clean = sanitize(pieces.join(""), options);
        expect([...clean].filter(isUnsafe)).toEqual([]);
        if (!options.keepNewlines) expect(clean).not.toContain("\n");
        expect(sanitize(clean, options)).toBe(clean);
      }),
      { numRuns: 2_000 },
    );
  });

  it("leaves text without any of it unchanged", () => {
    const plain = fc
      .string({ unit: "grapheme" })
      .filter(
        (text) => !/\p{Default_Ignorable_Code_Point}/u.test(text) && ![...text].some(isUnsafe),
      );
    fc.assert(
      fc.property(plain, (text) => {
        expect(sanitize(text)).toBe(text);
      }),
    );
  });

  it.each([
    ["unterminated OSC", `${ESC}]`],
    ["unterminated OSC with text", `${ESC}]0;aaaa`],
    ["unterminated CSI", `${ESC}[;;;;`],
    ["intermediates", `${ESC}[    `],
    ["8-bit", "\x9D\x9B\x90"],
    ["one OSC without an end", "a"],
  ])("takes time in proportion to the text: %s", (_, unit) => {
    const text = `${ESC}]${unit.repeat(1_000_000 / unit.length)}`;
    // A million characters: were it quadratic, this would not come to an end.
    expect(sanitize(text)).not.toContain(ESC);
  });
});
