INSERT INTO users (email, name) VALUES ('ada@example.org', 'Ada'), ('bob@example.org', 'Bob'), ('eve@example.org', NULL);
INSERT INTO products (sku, price, tags, weight) VALUES ('AAA', 9.99, '{red,big}', 1.5), ('BBB', 0, DEFAULT, NULL);
INSERT INTO orders (id, user_id, status, placed) SELECT ('00000000-0000-0000-0000-00000000000' || id)::uuid, id, 'paid', DATE '2024-01-01' + id::int FROM users;
INSERT INTO order_items SELECT o.id, p.id, 2 FROM orders o CROSS JOIN products p;

INSERT INTO users (email, name) VALUES ('ada@example.org', 'Ada Lovelace')
ON CONFLICT (email) DO UPDATE SET name = EXCLUDED.name, updated_at = NULL;
INSERT INTO users (email) VALUES ('bob@example.org') ON CONFLICT ON CONSTRAINT uq_users_email DO NOTHING;

UPDATE orders o SET note = u.name || '''s order' FROM users u WHERE u.id = o.user_id AND u.name IS NOT NULL;

WITH totals AS (
    SELECT i.order_id, sum(i.quantity * p.price) AS total FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY 1
), big AS (SELECT * FROM totals WHERE total > 10)
UPDATE orders SET status = 'shipped' FROM big WHERE big.order_id = orders.id;

CREATE OR REPLACE VIEW order_totals AS
SELECT o.id, u.email, o.status, sum(i.quantity) AS pieces, coalesce(sum(i.quantity * p.price), 0)::numeric(12,2) AS total
FROM orders o
JOIN users u ON u.id = o.user_id
LEFT JOIN order_items i ON i.order_id = o.id
LEFT JOIN products p ON p.id = i.product_id
GROUP BY o.id, u.email, o.status;
COMMENT ON VIEW order_totals IS 'what orders come to';
