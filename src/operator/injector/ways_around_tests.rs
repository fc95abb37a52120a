//! The ways around the gateway that a stored pod may leave, told from the typed pod and independently of the injector.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, SecurityContext, VolumeMount};

/// Sentences, for people who read a failed test; none where the gateway is the only way out.
pub(super) fn ways_around(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.as_ref().unwrap();
    let mut ways = of_the_pod(spec);
    let started = spec.init_containers.as_deref().unwrap_or_default();
    let [redirect, gateway, others @ ..] = started else {
        return vec!["the redirect and the gateway are not there".to_owned()];
    };
    ways.extend(of_the_redirect(redirect));
    ways.extend(of_the_gateway(gateway, redirect));
    let uid = gateway.security_context.as_ref().and_then(|context| context.run_as_user).unwrap_or_default();
    let (companions, others): (Vec<_>, Vec<_>) =
        others.iter().partition(|container| container.name == "postern-workspace");
    ways.extend(companions.iter().flat_map(|companion| of_the_companion(companion, gateway, uid)));
    for agent in others.into_iter().chain(&spec.containers) {
        ways.extend(of_an_agent(agent, uid, spec).into_iter().map(|way| format!("{}: {way}", agent.name)));
    }
    ways
}

fn of_the_pod(spec: &PodSpec) -> Vec<String> {
    let mut ways = Vec::new();
    let shared = [spec.host_network, spec.host_pid, spec.host_ipc, spec.share_process_namespace];
    if shared.contains(&Some(true)) {
        ways.push("shares namespaces".to_owned());
    }
    let tokens = spec.volumes.iter().flatten().filter(|volume| {
        let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        sources.into_iter().any(|source| source.service_account_token.is_some())
    });
    // One pod of the corpus asks for its token, by the annotation.
    if spec.automount_service_account_token != Some(false) && tokens.count() == 0 {
        ways.push("has a token that it did not ask for".to_owned());
    }
    let context = spec.security_context.clone().unwrap_or_default();
    if context.sysctls.iter().flatten().any(|sysctl| sysctl.name.starts_with("net.")) {
        ways.push("changes the network's settings".to_owned());
    }
    for volume in spec.volumes.iter().flatten() {
        let host = volume.host_path.as_ref().is_some_and(|host| !host.path.starts_with("/srv/models/"));
        if host || volume.nfs.is_some() || volume.iscsi.is_some() || volume.cephfs.is_some() {
            ways.push(format!("volume {}", volume.name));
        }
        let secret = volume.secret.as_ref().and_then(|secret| secret.secret_name.as_deref());
        if secret.is_some_and(|secret| secret.starts_with("postern-") && secret != volume.name) {
            ways.push(format!("volume {} is a Secret of Postern's under another name", volume.name));
        }
    }
    ways
}

fn of_the_redirect(redirect: &Container) -> Vec<String> {
    let context = redirect.security_context.clone().unwrap_or_default();
    let capabilities = context.capabilities.clone().unwrap_or_default();
    let expected = redirect.name == "postern-redirect"
        && redirect.image.as_deref().is_some_and(|image| {
            ["1.0.0", "1.1.0-rc1"]
                .iter()
                .any(|tag| image == format!("ghcr.io/postern-dev/postern-gateway:{tag}"))
        })
        && redirect.restart_policy.is_none()
        && redirect.command.is_none()
        && redirect.args.iter().flatten().next().is_some_and(|word| word == "redirect")
        && context.run_as_user == Some(0)
        && context.read_only_root_filesystem == Some(true)
        && capabilities.add == Some(vec!["NET_ADMIN".to_owned()])
        && capabilities.drop == Some(vec!["ALL".to_owned()]);
    if expected { Vec::new() } else { vec!["the redirect is another".to_owned()] }
}

fn of_the_gateway(gateway: &Container, redirect: &Container) -> Vec<String> {
    let context = gateway.security_context.clone().unwrap_or_default();
    let uid = context.run_as_user.unwrap_or_default();
    let capabilities = context.capabilities.clone().unwrap_or_default();
    let exempted = redirect.args.iter().flatten().skip_while(|word| *word != "--uid").nth(1);
    let intercepts = gateway
        .env
        .iter()
        .flatten()
        .any(|entry| entry.name == "POSTERN_INTERCEPT" && entry.value.as_deref() == Some("1"));
    let waits = gateway.startup_probe.as_ref().and_then(|probe| probe.http_get.as_ref());
    let expected = gateway.name == "postern-gateway"
        && gateway.image == redirect.image
        && gateway.restart_policy.as_deref() == Some("Always")
        && gateway.command.is_none()
        && exempted == Some(&uid.to_string())
        && uid >= 60_000
        && context.run_as_non_root == Some(true)
        && context.read_only_root_filesystem == Some(true)
        && capabilities.add.is_none()
        && capabilities.drop == Some(vec!["ALL".to_owned()])
        && intercepts
        && waits.is_some_and(|get| get.path.as_deref() == Some("/readyz"));
    let leaks = gateway.volume_mounts.iter().flatten().any(|mount| {
        mount.mount_path.starts_with("/etc/postern/own-roots/") && mount.name.starts_with("postern-")
    });
    let kept = |mount: &&VolumeMount| {
        mount.name == "postern-run"
            && mount.read_only == Some(true)
            && mount.mount_path.strip_prefix("/etc/") == mount.sub_path.as_deref()
    };
    let kept = gateway.volume_mounts.iter().flatten().filter(kept).map(|mount| mount.mount_path.as_str());
    let mut ways = Vec::new();
    if !kept.eq(["/etc/hosts", "/etc/resolv.conf"]) {
        ways.push("agents write what the gateway resolves names by".to_owned());
    }
    if !expected {
        ways.push("the gateway is another".to_owned());
    }
    if leaks {
        ways.push("the gateway would publish its own files".to_owned());
    }
    ways
}

fn of_the_companion(companion: &Container, gateway: &Container, uid: i64) -> Vec<String> {
    let context = companion.security_context.clone().unwrap_or_default();
    let capabilities = context.capabilities.clone().unwrap_or_default();
    let own = |mount: &&VolumeMount| mount.name != "postern-workspace";
    let read = companion.volume_mounts.iter().flatten().filter(own).collect::<Vec<_>>();
    let expected = companion.image == gateway.image
        && companion.restart_policy.as_deref() == Some("Always")
        && companion.command.is_none()
        && companion.args.iter().flatten().next().is_some_and(|word| word == "workspace")
        && context.run_as_user.is_some_and(|own| own != uid && own >= 60_000)
        && context.run_as_non_root == Some(true)
        && context.read_only_root_filesystem == Some(true)
        && capabilities.add.is_none()
        && capabilities.drop == Some(vec!["ALL".to_owned()])
        && companion.env.is_none()
        && companion.env_from.is_none();
    let reads_one = matches!(read.as_slice(), [mount] if mount.read_only == Some(true) && !mount.name.starts_with("postern-"));
    if expected && reads_one { Vec::new() } else { vec!["the companion is another".to_owned()] }
}

fn of_an_agent(agent: &Container, uid: i64, spec: &PodSpec) -> Vec<String> {
    let mut ways = Vec::new();
    let context = agent.security_context.clone().unwrap_or_default();
    if agent.name.starts_with("postern-") {
        ways.push("has a name of Postern's");
    }
    if context.privileged == Some(true) || context.allow_privilege_escalation != Some(false) {
        ways.push("may gain privileges");
    }
    let capabilities = context.capabilities.clone().unwrap_or_default();
    if capabilities.drop != Some(vec!["ALL".to_owned()]) {
        ways.push("keeps capabilities");
    }
    let dangerous =
        ["ALL", "SETUID", "SETGID", "NET_", "SYS_", "SETFCAP", "SETPCAP", "MKNOD", "BPF", "PERFMON"];
    let added = capabilities.add.unwrap_or_default();
    if added
        .iter()
        .any(|name| dangerous.iter().any(|other| name.trim_start_matches("CAP_").starts_with(other)))
        && !only_binds(&added)
    {
        ways.push("adds capabilities");
    }
    let pod_context = spec.security_context.clone().unwrap_or_default();
    if context.run_as_user.or(pod_context.run_as_user) == Some(uid) {
        ways.push("is the gateway's user");
    }
    if !is_filtered(&context)
        && pod_context.seccomp_profile.is_none_or(|profile| profile.type_ == "Unconfined")
    {
        ways.push("has no seccomp profile");
    }
    let mounts = agent.volume_mounts.iter().flatten().filter(|mount| mount.name.starts_with("postern-"));
    if mounts.clone().any(|mount| mount.name != "postern-trust" || mount.read_only != Some(true)) {
        ways.push("mounts what is the gateway's");
    }
    let references = serde_json::to_string(&(&agent.env, &agent.env_from)).unwrap();
    if ["\"postern-ca\"", "\"postern-credentials\""].iter().any(|name| references.contains(name)) {
        ways.push("reads Secrets of Postern's");
    }
    let file = |name: &str| {
        let entries: Vec<_> = agent.env.iter().flatten().filter(|entry| entry.name == name).collect();
        entries.len() == 1
            && entries[0].value.as_deref().is_some_and(|value| value.starts_with("/run/postern-trust/"))
    };
    if !file("SSL_CERT_FILE") || !file("NODE_EXTRA_CA_CERTS") {
        ways.push("does not trust the gateway");
    }
    ways.into_iter().map(str::to_owned).collect()
}

/// `NET_BIND_SERVICE` is the one of its kind that does no harm.
fn only_binds(added: &[String]) -> bool {
    let allowed = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"];
    added.iter().all(|name| allowed.contains(&name.trim_start_matches("CAP_")))
}

fn is_filtered(context: &SecurityContext) -> bool {
    context.seccomp_profile.as_ref().is_some_and(|profile| profile.type_ != "Unconfined")
}
