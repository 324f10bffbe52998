/** How an exported conversation looks: light and dark, on a screen and on paper. */
export const EXPORT_STYLE = `
:root {
  color-scheme: light dark;
  --text: #1d2126; --soft: #5c6670; --page: #ffffff; --field: #f4f5f7; --line: #d9dde2;
  --accent: #0b6e75; --good: #1a6b2f; --bad: #a8231c; --added: #e2f4e5; --removed: #fbe6e4;
  --key: #86309c; --odd: #8a5a00; --call: #2456a8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #dfe3e8; --soft: #97a1ab; --page: #15181c; --field: #1e2329; --line: #343b43;
    --accent: #5cc4cc; --good: #7fcf92; --bad: #f08a82; --added: #17301d; --removed: #3a1c1b;
    --key: #d59be6; --odd: #e0b060; --call: #8fb4f0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 54rem; padding: 2rem 1.25rem 4rem;
  background: var(--page); color: var(--text);
  font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.4rem; line-height: 1.3; margin: 0 0 .5rem; }
h2 { font-size: .8rem; letter-spacing: .04em; color: var(--soft); margin: 0 0 .4rem; }
h3, h4, h5, h6 { margin: 1.2rem 0 .4rem; line-height: 1.3; }
h3 { font-size: 1.3rem; }
h4 { font-size: 1.12rem; }
h5 { font-size: 1rem; }
h6 { font-size: .9rem; }
a { color: var(--accent); }
header, footer { color: var(--soft); font-size: .9rem; }
header p, footer p { margin: .15rem 0; }
section { border-top: 1px solid var(--line); margin-top: 1.25rem; padding-top: 1rem; }
section.user { border-left: 3px solid var(--accent); border-top: 0; padding: .1rem 0 .1rem 1rem; }
p { margin: .6rem 0; }
pre, code { font: .86rem/1.5 ui-monospace, monospace; }
pre { background: var(--field); border-radius: 6px; margin: .6rem 0; padding: .7rem .9rem; white-space: pre-wrap; }
pre.text { background: none; font: inherit; padding: 0; }
:not(pre) > code { background: var(--field); border-radius: 4px; padding: .1em .3em; }
blockquote { border-left: 3px solid var(--line); color: var(--soft); margin: .6rem 0; padding-left: .9rem; }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; }
th.right, td.right { text-align: right; }
th.center, td.center { text-align: center; }
img { max-width: 100%; border-radius: 6px; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--soft); }
summary b { color: var(--text); }
.failed, .lost { color: var(--bad); }
.refused { color: var(--odd); }
.with { color: var(--soft); font-size: .9rem; }
.file { display: inline-block; border: 1px solid var(--line); border-radius: .4rem; padding: .1rem .6rem; }
.keyword { color: var(--key); }
.string { color: var(--good); }
.number { color: var(--odd); }
.comment { color: var(--soft); font-style: italic; }
.type { color: var(--accent); }
.call { color: var(--call); }
.usage { color: var(--soft); font-size: .8rem; }
.added { background: var(--added); color: var(--good); }
.removed { background: var(--removed); color: var(--bad); }
@media print {
  body { max-width: none; padding: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  pre, section.user { break-inside: avoid-page; }
}
`;
