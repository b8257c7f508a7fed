/** Work of which only the newest matters. */

/**
 * Waits before it begins and gives way to whatever comes after it.
 *
 * At most one piece of work runs at a time: a newer one ends the one that waits or runs.
 */
export class Latest {
  private current: AbortController | undefined;

  /**
   * Runs work after a pause, unless it is superseded or ended first.
   *
   * @param pause milliseconds.
   * @param outer ends it, too.
   * @returns what the work returns; nothing if it was ended.
   */
  async run<T>(pause: number, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.end();
    const controller = new AbortController();
    this.current = controller;
    const signal = AbortSignal.any([outer, controller.signal]);
    try {
      if (!(await slept(pause, signal))) {
        return undefined;
      }
      return await work(signal);
    } catch (error) {
      if (signal.aborted) {
        return undefined;
      }
      throw error;
    } finally {
      if (this.current === controller) {
        this.current = undefined;
      }
    }
  }

  /** Ends what waits or runs. */
  end(): void {
    this.current?.abort();
    this.current = undefined;
  }
}

/** Whether the time passed before the signal came. */
export function slept(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(false);
      return;
    }
    const ended = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", ended);
      resolve(true);
    }, milliseconds);
    signal.addEventListener("abort", ended, { once: true });
  });
}
