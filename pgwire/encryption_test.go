package pgwire

import (
	"crypto/tls"
	"testing"
)

// Cipher suites have OpenSSL's names, of those that servers of Go's may agree on.
func TestEncryptionOf(t *testing.T) {
	for suite, want := range map[uint16]Encryption{
		tls.TLS_AES_128_GCM_SHA256:                      {Cipher: "TLS_AES_128_GCM_SHA256", Bits: 128},
		tls.TLS_CHACHA20_POLY1305_SHA256:                {Cipher: "TLS_CHACHA20_POLY1305_SHA256", Bits: 256},
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:       {Cipher: "ECDHE-RSA-AES256-GCM-SHA384", Bits: 256},
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:        {Cipher: "ECDHE-ECDSA-AES128-SHA", Bits: 128},
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: {Cipher: "ECDHE-RSA-CHACHA20-POLY1305", Bits: 256},
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256:             {Cipher: "AES128-GCM-SHA256", Bits: 128},
	} {
		if got := encryptionOf(tls.CipherSuiteName(suite)); got != want {
			t.Errorf("%s: %+v, want %+v", tls.CipherSuiteName(suite), got, want)
		}
	}
}
