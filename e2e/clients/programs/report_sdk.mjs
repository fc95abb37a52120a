// What the SDK programs have in common: the scenario's word, and one JSON object, {text, tool} or {error}.

export const UNNAMED = 'https://unnamed.example.com';
export const FORBIDDEN = 'https://forbidden.example.com';

export async function run(scenarios) {
  try {
    console.log(JSON.stringify(await scenarios[process.argv[2]]()));
  } catch (error) {
    const chain = [];
    for (let at = error; at; at = at.cause) chain.push(`${at.constructor.name}: ${at.message}`);
    console.log(JSON.stringify({error: chain.join(': ')}));
  }
}
