/** What each thing looks like, as a sequence for styles has it. The colours are the terminal's own. */
export interface Theme {
  readonly strong: string;
  readonly emphasis: string;
  readonly struck: string;
  readonly dim: string;
  /** What leads the eye: marks, the prompt's sign, what is chosen. */
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
  /** The part of a text that is chosen. */
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

/** Signs alone tell what colours do elsewhere. */
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
