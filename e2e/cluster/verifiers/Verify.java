/** A client of Java: `java Verify.java ROOTS.pem NAME PORT`; exits 0 where it accepts the certificate, 1 where not. */

import java.io.FileInputStream;
import java.net.Socket;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

class Verify {
    public static void main(String[] arguments) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var roots = new FileInputStream(arguments[0])) {
            for (var root : CertificateFactory.getInstance("X.509").generateCertificates(roots)) {
                store.setCertificateEntry("root" + store.size(), root);
            }
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        var port = Integer.parseInt(arguments[2]);
        var tcp = new Socket("127.0.0.1", port);
        try (var socket = (SSLSocket) context.getSocketFactory().createSocket(tcp, arguments[1], port, true)) {
            var parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            socket.setSSLParameters(parameters);
            socket.startHandshake();
            System.out.println("accepted");
        } catch (SSLException refusal) {
            System.out.println(refusal.getMessage());
            System.exit(1);
        } catch (Throwable broken) {
            System.out.println(broken);
            System.exit(2);
        }
    }
}
