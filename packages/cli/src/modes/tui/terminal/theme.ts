/** The style of each element as SGR parameters. The colors are those of the terminal. */
export interface Theme {
  readonly strong: string;
  readonly emphasis: string;
  readonly struck: string;
  readonly dim: string;
  /** Marks, the sign of the prompt, the chosen item. */
  readonly accent: string;
  readonly heading: string;
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

export const COLORS: Theme = {
  strong: "1",
  emphasis: "3",
  struck: "9",
  dim: "2",
  accent: "36",
  heading: "1;36",
  link: "4;34",
  code: "36",
  good: "32",
  bad: "31",
  warning: "33",
  added: "32",
  removed: "31",
  keyword: "35",
  string: "32",
  number: "33",
  comment: "2;3",
  type: "36",
  call: "34",
  selected: "7",
};

/** Signs replace colors. */
export const NO_COLORS: Theme = {
  strong: "",
  emphasis: "",
  struck: "",
  dim: "",
  accent: "",
  heading: "",
  link: "",
  code: "",
  good: "",
  bad: "",
  warning: "",
  added: "",
  removed: "",
  keyword: "",
  string: "",
  number: "",
  comment: "",
  type: "",
  call: "",
  selected: "",
};
