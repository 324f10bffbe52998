/** The output of a command of the user's own, as early versions put it behind a prompt. */
export const OLD_OUTPUT: string =
  '[I ran this command myself (exit code 1): "npm test", characters: 8]\n1 failed';
