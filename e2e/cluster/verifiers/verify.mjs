// A client of Node, or of Bun: `node verify.mjs NAME PORT` with the roots in NODE_EXTRA_CA_CERTS; exits 0 where it accepts the
// certificate, 1 where it does not.
import { get } from "node:https";
import { isIP } from "node:net";

const [name, port] = process.argv.slice(2);
const lookup = (_, options, answer) => (options.all ? answer(null, [{ address: "127.0.0.1", family: 4 }]) : answer(null, "127.0.0.1", 4));
const request = get({ host: name, port, servername: isIP(name) ? "" : name, lookup }, (response) => {
  console.log("accepted", response.statusCode);
  response.destroy();
});
request.on("error", (error) => {
  console.log(error.code, error.message);
  const refused = /CERT/.test(error.code) || /subtree violation|unsupported name constraint type/.test(error.message);
  process.exitCode = refused ? 1 : 2;
});
