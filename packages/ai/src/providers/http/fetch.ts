export type { Fetch, FetchedResponse, FetchRequest, ResponseHeaders } from "../../client/fetch.ts";
