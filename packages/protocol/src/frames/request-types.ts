/**
 * Every request of the protocol, beside `hello`, `ping` and `goodbye`. A server that has no
 * service for one of these answers `not_implemented`; any other type is an error of the client.
 */
export const REQUEST_TYPES: ReadonlySet<string> = new Set([
  "models",
  "stream_request",
  "complete_request",
  "abort_request",
  "resume",
  "session_create",
  "session_list",
  "session_attach",
  "session_close",
  "session_update",
  "session_request",
  "session_file",
  "session_rename",
  "session_archive",
  "session_fork",
  "session_search",
  "prompt",
  "continue",
  "approve",
  "steer",
  "follow_up",
  "queue_edit",
  "abort",
  "messages_replace",
  "reset",
  "tool_register",
  "tool_update",
  "tool_result",
]);
