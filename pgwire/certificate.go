package pgwire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// SelfSigned makes a certificate and its key, PEM encoded, for a server that faces a
// network without having been given one. It proves no identity; it keeps passwords
// and rows from the eyes of others. hosts are names and addresses.
func SelfSigned(clock env.Clock, ids env.IDs, hosts []string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), idReader{ids})
	if err != nil {
		return nil, nil, fmt.Errorf("generate server key: %w", err)
	}
	var serial [16]byte
	ids.Read(serial[:])
	serial[0] &= 0x7f
	now := clock.Now()
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject:      pkix.Name{CommonName: "skipprd"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(idReader{ids}, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign server certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode server key: %w", err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// idReader reads entropy from env.IDs.
type idReader struct{ ids env.IDs }

func (r idReader) Read(b []byte) (int, error) {
	r.ids.Read(b)
	return len(b), nil
}
