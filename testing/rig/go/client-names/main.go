// Issues a client certificate for every subject on stdin and tells how Go's crypto/x509 judges it, as the x509 authenticator of
// Kubernetes asks: is it valid for a client, and which common name and organizations does it have.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"time"
)

// A row of the question: the subject is a Name in DER.
type question struct {
	Name    string `json:"name"`
	Subject []byte `json:"subject"`
}

// What Go says of it; Error is empty when the certificate is read and valid.
type answer struct {
	Name          string   `json:"name"`
	Certificate   []byte   `json:"certificate"`
	Error         string   `json:"error"`
	CommonName    string   `json:"commonName"`
	Organizations []string `json:"organizations"`
}

func main() {
	var questions []question
	check(json.NewDecoder(os.Stdin).Decode(&questions))
	authority, key := newAuthority()
	answers := make([]answer, 0, len(questions))
	for number, row := range questions {
		answers = append(answers, judge(row, issue(row, number, authority, key), authority))
	}
	check(json.NewEncoder(os.Stdout).Encode(answers))
}

func newAuthority() (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	authority, err := x509.ParseCertificate(bytes)
	check(err)
	return authority, key
}

func issue(row question, number int, authority *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(number) + 2), RawSubject: row.Subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	bytes, err := x509.CreateCertificate(rand.Reader, template, authority, &own.PublicKey, key)
	check(err)
	return bytes
}

func judge(row question, bytes []byte, authority *x509.Certificate) answer {
	said := answer{Name: row.Name, Certificate: bytes, Organizations: []string{}}
	certificate, err := x509.ParseCertificate(bytes)
	if err != nil {
		said.Error = err.Error()
		return said
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificate.Verify(options); err != nil {
		said.Error = err.Error()
		return said
	}
	said.CommonName = certificate.Subject.CommonName
	said.Organizations = append(said.Organizations, certificate.Subject.Organization...)
	return said
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
