/** The variables that a program was started with. */
export type Environment = Readonly<Record<string, string | undefined>>;
