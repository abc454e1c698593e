package numeric

import (
	"crypto/md5"
	"fmt"
	"testing"
	"time"
)

// TestPowerWithManyDigits: powers have all the digits that PostgreSQL gives them, and soon.
func TestPowerWithManyDigits(t *testing.T) {
	begin := time.Now()
	for _, c := range []struct{ base, exponent, want string }{
		{"10.5", "128000", "ca575bc45da58355a046819004602018"},
		{"1.0000001", "2000000000", "d848fdab66e40848bfa567cf821ee915"},
		{"0.99999", "100000", "1e3d65f45df94b200e96b7ae81024a98"},
		{"3", "-30000", "46797ffbbab123654a370ccaccb5214a"},
		{"1.5", "100000", "84014bd342e634bea6bcb40753684ecb"},
		{"-1.1", "300001", "17f7f319364913a2b68ba64ba0819a54"},
		{"2", "400000", "3257dc71b460d4c5cb4b7aa97ffb09c7"},
	} {
		a, err := Parse(c.base)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse(c.exponent)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Power(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", md5.Sum([]byte(n.Text()))); got != c.want {
			t.Errorf("%s ^ %s: digest %s, want %s, of %.60s", c.base, c.exponent, got, c.want, n.Text())
		}
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("took %s", took)
	}
}
