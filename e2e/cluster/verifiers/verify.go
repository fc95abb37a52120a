// A client of Go: `verify ROOTS.pem NAME PORT`; exits 0 where it accepts the certificate, 1 where it does not.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	connection, err := tls.Dial("tcp", "127.0.0.1:"+os.Args[3], &tls.Config{RootCAs: roots, ServerName: os.Args[2]})
	var refusal *tls.CertificateVerificationError
	switch {
	case err == nil:
		fmt.Println("accepted")
		connection.Close()
	case errors.As(err, &refusal):
		fmt.Println(err)
		os.Exit(1)
	default:
		fmt.Println(err)
		os.Exit(2)
	}
}
