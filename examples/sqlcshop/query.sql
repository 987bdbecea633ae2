-- name: GetItem :one
SELECT * FROM items WHERE id = $1;

-- name: InsertSale :exec
INSERT INTO sales (no, item) VALUES ($1, $2);

-- name: TakeItem :execrows
UPDATE items SET remains = remains - 1, version = version + 1 WHERE id = $1 AND version = $2;
