import { findThrownFailure, type OnError } from "./failures.ts";
import { RequestError, toErrorResponse } from "./http.ts";

/** A route whose errors are responses: with our own sentence, and nothing of what a service wrote. `onError` gets that. */
export function toRoute(
  answer: (request: Request) => Promise<Response>,
  onError: OnError,
): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      if (error instanceof RequestError) return toErrorResponse(error);
      const { kind, message } = findThrownFailure(error, onError);
      return toErrorResponse(new RequestError(500, kind, message));
    }
  };
}
