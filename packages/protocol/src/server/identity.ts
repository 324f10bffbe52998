/** The user behind a client: what the `authorize` of a server found out from its request. */
export interface Identity {
  readonly user: string;
  /** The organization that the user acts for; users of two tenants are two users. */
  readonly tenant?: string;
  readonly roles?: readonly string[];
}

/** Whether both are the same user of the same tenant, or both unknown. */
export function isSameUser(one: Identity | undefined, other: Identity | undefined): boolean {
  return one?.user === other?.user && one?.tenant === other?.tenant;
}
