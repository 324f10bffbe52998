/** What is said of the scripted model wherever it takes the place of a real one. */
export const SCRIPTED_LABEL = "scripted model: it plays a small part, no service is asked";
