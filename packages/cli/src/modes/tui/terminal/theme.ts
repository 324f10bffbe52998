/** The style of each element as SGR parameters. By default the colors are those of the terminal. */
export interface Theme {
  readonly strong: string;
  readonly emphasis: string;
  readonly struck: string;
  readonly dim: string;
  /** Marks, the sign of the prompt, the chosen item. */
  readonly accent: string;
  /** Behind the user's prompts. */
  readonly prompt: string;
  /** Headings: of the first level, of the second, of the others. */
  readonly title: string;
  readonly heading: string;
  readonly subheading: string;
  readonly link: string;
  /** Code within a line. */
  readonly code: string;
  readonly good: string;
  readonly bad: string;
  readonly warning: string;
  /** Of a diff. */
  readonly added: string;
  readonly removed: string;
  /** Of a program. */
  readonly keyword: string;
  readonly string: string;
  readonly number: string;
  readonly comment: string;
  readonly type: string;
  readonly call: string;
  /** The selected part of a text. */
  readonly selected: string;
}

function createTheme(choose: (style: string) => string): Theme {
  return {
    strong: choose("1"),
    emphasis: choose("3"),
    struck: choose("9"),
    dim: choose("2"),
    accent: choose("36"),
    prompt: "",
    title: choose("1;4;36"),
    heading: choose("1;36"),
    subheading: choose("1"),
    link: choose("4;34"),
    code: choose("36"),
    good: choose("32"),
    bad: choose("31"),
    warning: choose("33"),
    added: choose("32"),
    removed: choose("31"),
    keyword: choose("35"),
    string: choose("32"),
    number: choose("33"),
    comment: choose("2;3"),
    type: choose("36"),
    call: choose("34"),
    selected: choose("7"),
  };
}

export const COLORS: Theme = createTheme((style) => style);

/** Signs replace colors. */
export const NO_COLORS: Theme = createTheme(() => "");
