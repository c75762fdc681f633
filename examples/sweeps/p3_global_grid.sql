-- One line for each cell of p3_global_grid.toml. A run counts only if its attention is saturated: global on the best tokens,
-- local on other locally optimal ones. (Best tokens that can be separated are locally optimal, too.)
.mode csv
.separator "," "\n"
.headers on
SELECT params, samples, tokens, dim, count(*) AS runs,
       sum(max_softmax > 0.99) AS saturated,
       sum(max_softmax > 0.99 AND global = 1) AS global,
       sum(max_softmax > 0.99 AND global = 0 AND ifnull("selected.local", 0) = 1) AS local,
       sum("selected.status" = 'certified') AS certified,
       sum("selected.status" = 'infeasible') AS infeasible
FROM runs WHERE run_status = 'completed'
GROUP BY params, samples, tokens, dim ORDER BY params DESC, samples, tokens, dim;
