package lsn

import "testing"

// TestRecordEnd: an insert position behind a fresh page's header is the page's start.
func TestRecordEnd(t *testing.T) {
	for in, want := range map[LSN]LSN{
		0x19E9488:                    0x19E9488,
		8192*1000 + 24:               8192 * 1000,
		8192*1000 + 40:               8192*1000 + 40, // the rest of a record that began before
		3*(16<<20) + 40:              3 * (16 << 20),
		3*(16<<20) + 24:              3*(16<<20) + 24,
		8192 * 7:                     8192 * 7,
		LSN(5)<<32 + 8192*3 + 24:     LSN(5)<<32 + 8192*3,
		LSN(5)<<32 + 8192*3 + 24 + 8: LSN(5)<<32 + 8192*3 + 24 + 8,
	} {
		if got := in.RecordEnd(); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestParse: what the server writes is read, and written again as it does.
func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"0/0": "0/0", "16/B374D848": "16/B374D848", "16/b374d848": "16/B374D848", "00016/0B374D84": "16/B374D84", "FFFFFFFF/FFFFFFFF": "FFFFFFFF/FFFFFFFF",
		"": "", "0": "", "/": "", "1/": "", "/1": "", "1/2/3": "", "1/100000000": "", "100000000/1": "", "+1/2": "", "0x1/2": "", " 1/2": "", "1_0/2": "",
	} {
		l, err := Parse(in)
		if (err == nil) != (want != "") || err == nil && l.String() != want {
			t.Errorf("%q: %v, %v, want %q", in, l, err, want)
		}
	}
	if p := LSN(0x16B374D848).Position(); p != "16/B374D848" {
		t.Errorf("position %q", p)
	}
}
