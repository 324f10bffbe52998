import type { ModelAccess } from "../model-access.ts";

/**
 * Where an agent in Node gets what it was not given: a client of every service, with keys and
 * addresses from this machine, and models by their names. The one place of this package that
 * knows model services; they are loaded when an agent needs them first.
 */
export const access: ModelAccess = {
  async createClient() {
    const { createModelClient } = await import("@gyre/ai/node");
    return createModelClient();
  },
  async findModel(name) {
    const { findModel } = await import("@gyre/ai/models");
    return findModel(name);
  },
};
