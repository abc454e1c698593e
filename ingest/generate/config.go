package generate

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
)

// Config is the shop's size and pace, set by the options of a GENERATOR connection.
type Config struct {
	// Seed (SEED) chooses the history. Default 1.
	Seed int64
	// Rate (RATE) is transactions per second; 0 means as fast as possible. Default 100.
	Rate float64
	// Customers (SCALE, in thousands) is how many customers there are at first;
	// products and accounts are a tenth of it, at least ten. Default 1000.
	Customers int64
	// Orders (BACKFILL) is how many orders, and visits, there are at first. Default
	// five times Customers.
	Orders int64
	// Transactions (TRANSACTIONS) ends the history after so many; 0 means never.
	Transactions int64
	// ChunkRows (CHUNK_ROWS) is the size of a chunk of the backfill. Default 50000.
	ChunkRows int64
}

const (
	customersDefault = 1000
	rateDefault      = 100
	chunkRowsDefault = 50_000
	smallTableRows   = 10
	thousand         = 1000
	countMax         = math.MaxInt32 * 1000
)

// withDefaults returns a filled copy; Rate is left as it is, since 0 has a meaning.
func (c Config) withDefaults() Config {
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Customers == 0 {
		c.Customers = customersDefault
	}
	if c.Orders == 0 {
		c.Orders = 5 * c.Customers
	}
	if c.ChunkRows == 0 {
		c.ChunkRows = chunkRowsDefault
	}
	return c
}

// Products is how many products there are.
func (c Config) Products() int64 { return max(smallTableRows, c.Customers/10) }

// Accounts is how many rows each of the two tables of accounts has.
func (c Config) Accounts() int64 { return max(smallTableRows, c.Customers/10) }

// ParseConfig reads connection options; all problems are reported at once.
func ParseConfig(options map[string]string) (Config, error) {
	c := Config{Rate: rateDefault}
	counts := map[string]*int64{
		"SCALE": &c.Customers, "BACKFILL": &c.Orders,
		"TRANSACTIONS": &c.Transactions, "CHUNK_ROWS": &c.ChunkRows,
	}
	names := make([]string, 0, len(options))
	for name := range options {
		names = append(names, name)
	}
	sort.Strings(names)
	var errs []error
	for _, name := range names {
		value := options[name]
		switch {
		case name == "SEED":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				errs = append(errs, fmt.Errorf("option SEED must be a whole number"))
			}
			c.Seed = n
		case name == "RATE":
			r, err := strconv.ParseFloat(value, 64)
			if err != nil || math.IsNaN(r) || r < 0 || r > 1e9 {
				errs = append(errs, fmt.Errorf("option RATE must be a number from 0 to 1e9"))
			}
			c.Rate = r
		case counts[name] != nil:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || n > countMax {
				errs = append(errs, fmt.Errorf("option %s must be a whole number, not negative", name))
			}
			*counts[name] = n
			if name == "SCALE" {
				c.Customers = min(n, countMax/thousand) * thousand
			}
		default:
			errs = append(errs, fmt.Errorf("unknown option %s: a generator has SEED, RATE, SCALE, "+
				"BACKFILL, TRANSACTIONS and CHUNK_ROWS", name))
		}
	}
	return c.withDefaults(), errors.Join(errs...)
}
