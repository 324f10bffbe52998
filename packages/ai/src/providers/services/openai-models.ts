/** Models of OpenAI from before structured output, by their ids. */
const OLD = /gpt-3|gpt-4(?![.\do])|gpt-4o-2024-05-13|(^|\/)o1-(mini|preview)/;

/** Whether a model of OpenAI makes its text fit a schema: all do since August 2024. */
export function hasStructuredOutput(id: string): boolean {
  return !OLD.test(id);
}
