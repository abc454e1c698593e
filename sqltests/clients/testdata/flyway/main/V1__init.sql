-- users and what they buy
CREATE TYPE order_status AS ENUM ('new', 'paid', 'shipped');

CREATE TABLE users (
    id          BIGSERIAL PRIMARY KEY,
    email       VARCHAR(255) NOT NULL,
    name        TEXT,
    is_active   BOOLEAN NOT NULL DEFAULT TRUE,
    settings    JSONB NOT NULL DEFAULT '{}'::jsonb,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT uq_users_email UNIQUE (email),
    CONSTRAINT ck_users_email CHECK (email LIKE '%@%')
);

CREATE TABLE products (
    id     INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sku    CHAR(8) NOT NULL UNIQUE,
    price  NUMERIC(12, 2) NOT NULL CHECK (price >= 0),
    tags   TEXT[] DEFAULT ARRAY[]::TEXT[],
    weight DOUBLE PRECISION
);

CREATE TABLE orders (
    id       UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id  BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    status   order_status NOT NULL DEFAULT 'new',
    placed   DATE NOT NULL DEFAULT CURRENT_DATE,
    note     TEXT
);

CREATE TABLE order_items (
    order_id   UUID NOT NULL,
    product_id INT NOT NULL,
    quantity   SMALLINT NOT NULL DEFAULT 1,
    PRIMARY KEY (order_id, product_id),
    CONSTRAINT fk_item_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE ON UPDATE NO ACTION,
    CONSTRAINT fk_item_product FOREIGN KEY (product_id) REFERENCES products (id) DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX idx_orders_user ON orders (user_id);
CREATE INDEX IF NOT EXISTS idx_orders_placed ON orders USING btree (placed DESC NULLS LAST);
CREATE INDEX idx_users_lower_email ON users (lower(email));
CREATE INDEX idx_users_settings ON users USING gin (settings);
CREATE INDEX idx_active ON users (created_at) WHERE is_active;

COMMENT ON TABLE users IS 'People who buy';
COMMENT ON COLUMN users.email IS 'where to write to; it''s unique';
COMMENT ON TYPE order_status IS 'where it stands';
COMMENT ON INDEX idx_orders_user IS 'looked up often';
COMMENT ON CONSTRAINT ck_users_email ON users IS 'an address has an @';
