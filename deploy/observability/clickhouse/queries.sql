-- What was denied in the last day, by rule, and one event of each for `postern ledger show`.
SELECT rule, verdict, sum(count) AS denials, uniqExact(pod) AS pods, any(host) AS host, argMax(id, time) AS newest
FROM postern_events
WHERE time > now() - INTERVAL 1 DAY AND verdict IN ('Deny', 'WouldDeny')
GROUP BY rule, verdict ORDER BY denials DESC LIMIT 50;

-- One event whole, by the id that an agent was told.
SELECT event FROM postern_events
WHERE id = {id:String} AND time > now() - INTERVAL 30 DAY;

-- What happened in one session, in order.
SELECT time, kind, verdict, rule, host, path, tool, model, input_tokens, output_tokens, id
FROM postern_events
WHERE session = {session:String} AND time > now() - INTERVAL 7 DAY
ORDER BY time, sequence LIMIT 1000;

-- Tokens by model and namespace; those that were read from a cache are part of the input.
SELECT namespace, model, count() AS answers, sum(input_tokens) AS input, sum(cache_read_tokens) AS cached, sum(output_tokens) AS output
FROM postern_events
WHERE time > now() - INTERVAL 1 DAY AND kind = 'Response' AND model != ''
GROUP BY namespace, model ORDER BY input + output DESC LIMIT 50;

-- Tools that were called, and how often a call was denied.
SELECT tool, count() AS calls, countIf(verdict = 'Deny') AS denied, uniqExact(session) AS sessions
FROM postern_events
WHERE time > now() - INTERVAL 1 DAY AND kind = 'ToolCall'
GROUP BY tool ORDER BY calls DESC LIMIT 50;

-- Calls that one session repeated with the same input: an agent that goes round in circles.
SELECT session, tool, input_sha256, count() AS times, min(time) AS first, max(time) AS last
FROM postern_events
WHERE time > now() - INTERVAL 1 DAY AND kind = 'ToolCall' AND input_sha256 != ''
GROUP BY session, tool, input_sha256 HAVING times >= 5 ORDER BY times DESC LIMIT 50;

-- Hosts that a namespace had not asked for in the two weeks before.
SELECT namespace, host, min(time) AS first, sum(count) AS events
FROM postern_events
WHERE time > now() - INTERVAL 15 DAY AND host != ''
GROUP BY namespace, host HAVING first > now() - INTERVAL 1 DAY ORDER BY first LIMIT 100;

-- Pods whose events are not all there: numbers that are missing between the first and the last of a start.
SELECT pod, start, max(sequence) - min(sequence) + 1 - uniqExact(sequence) AS missing
FROM (
    SELECT pod, sequence, countIf(kind = 'Lifecycle' AND sequence = 1) OVER (PARTITION BY pod ORDER BY time, sequence) AS start
    FROM postern_events WHERE time > now() - INTERVAL 1 DAY
)
GROUP BY pod, start HAVING missing > 0 ORDER BY missing DESC LIMIT 50;
