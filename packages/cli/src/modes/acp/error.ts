/** What an editor asked for makes no sense. */
export class AcpInvalidError extends Error {}

/** There is no key, or the service refused it. */
export class AcpAuthError extends Error {}
