// One request by java.net.http: METHOD URL SIZE [NAME:VALUE]…

import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.Base64;
import javax.net.ssl.SSLSession;

class WithJava {
    private static final String PROXY = System.getenv("HTTPS_PROXY");

    public static void main(String[] arguments) throws Exception {
        try {
            HttpResponse<byte[]> answer = client().send(request(arguments), BodyHandlers.ofByteArray());
            SSLSession session = answer.sslSession().orElse(null);
            String issuer = session == null ? "" : issuer((X509Certificate) session.getPeerCertificates()[0]);
            System.out.printf("status %d\nissuer %s\nversion %s\n\n", answer.statusCode(), issuer, answer.version());
            System.out.write(answer.body());
            System.out.flush();
        } catch (java.io.IOException error) {
            StringBuilder said = new StringBuilder();
            for (Throwable at = error; at != null; at = at.getCause()) {
                said.append(at).append(": ");
            }
            System.out.printf("error %s\n\n", said.toString().replace('\n', ' '));
        }
    }

    private static HttpClient client() {
        HttpClient.Builder client = HttpClient.newBuilder();
        if (PROXY != null) {
            URI proxy = URI.create(PROXY);
            client.proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort())));
        }
        return client.build();
    }

    private static HttpRequest request(String[] arguments) {
        String body = "x".repeat(Integer.parseInt(arguments[2]));
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(arguments[1]))
                .timeout(Duration.ofSeconds(30))
                .method(arguments[0], body.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(body));
        if (PROXY != null) {
            // By a header: with an Authenticator the client drops the request's own Authorization.
            byte[] login = URI.create(PROXY).getUserInfo().getBytes(StandardCharsets.UTF_8);
            request.header("Proxy-Authorization", "Basic " + Base64.getEncoder().encodeToString(login));
        }
        for (int i = 3; i < arguments.length; i++) {
            String[] header = arguments[i].split(":", 2);
            request.header(header[0], header[1]);
        }
        return request.build();
    }

    private static String issuer(X509Certificate certificate) {
        String name = certificate.getIssuerX500Principal().getName();
        return name.replaceAll(".*CN=([^,]*).*", "$1");
    }
}
