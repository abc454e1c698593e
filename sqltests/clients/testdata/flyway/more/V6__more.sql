ALTER TYPE order_status ADD VALUE 'lost' BEFORE 'shipped';
