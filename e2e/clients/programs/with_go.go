// One request by Go's net/http: METHOD URL SIZE [NAME:VALUE]…
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Printf("error %s\n\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

func run(method, url, size string, headers []string) error {
	bytes, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, url, strings.NewReader(strings.Repeat("x", bytes)))
	if err != nil {
		return err
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ":")
		request.Header.Set(name, value)
	}
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	issuer := ""
	if answer.TLS != nil {
		issuer = answer.TLS.PeerCertificates[0].Issuer.CommonName
	}
	fmt.Printf("status %d\nissuer %s\nversion %s\n\n%s", answer.StatusCode, issuer, answer.Proto, body)
	return nil
}
