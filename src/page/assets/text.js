// How numbers, times and names are written.

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const FULL = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const whole = (number) => WHOLE.format(number);
export const short = (number) => (number < 10_000 ? WHOLE.format(number) : SHORT.format(number));
export const compact = (number) => SHORT.format(number);
export const clock = (millis) => CLOCK.format(millis);
export const full = (millis) => FULL.format(millis);

/** The time of day; with the day where that is not today. */
export function moment(millis, now = Date.now()) {
  const day = DAY.format(millis);
  return day === DAY.format(now) ? clock(millis) : `${day} ${clock(millis)}`;
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const unit = count < 1e6 ? "kB" : count < 1e9 ? "MB" : "GB";
  const size = count / { kB: 1e3, MB: 1e6, GB: 1e9 }[unit];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

export function duration(millis) {
  const seconds = Math.round(millis / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 48) return `${hours} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(hours / 24)} d`;
}

export const plural = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

/** A verdict in words. */
export const VERDICTS = { Allow: "Allowed", Deny: "Denied", WouldDeny: "Would deny", Audit: "Audited", Unknown: "Unknown" };
