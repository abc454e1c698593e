package setting

import "testing"

// TestReadPosition: a value is read early, and shown in one form.
func TestReadPosition(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "  ": "", "0/16b3748": "0/16B3748", "00/01": "0/1", "FFFFFFFF/FFFFFFFF": "FFFFFFFF/FFFFFFFF",
		"shop=0/2, crm = 1/A": "shop=0/2, crm=1/A", "Shop=0/2": "shop=0/2", `"My Shop"=0/2`: `"My Shop"=0/2`, "0/1, shop=0/2": "0/1, shop=0/2",
	} {
		if got, err := checkReadPosition("", value); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", value, got, err, want)
		}
	}
	for _, value := range []string{"x", "0", "0/", "/1", "0/1/2", "1FFFFFFFF/0", "0/1,0/2", "a=0/1,a=0/2", "=0/1", "0/1,", "-1/0", "0x1/0"} {
		if got, err := checkReadPosition("", value); err == nil {
			t.Errorf("%q is taken as %q", value, got)
		}
	}
}
