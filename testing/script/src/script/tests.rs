//! Parses every step once, and arguments that are no steps.

use super::*;

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn every_step_is_read() {
    let write =
        |path: &str, content: &str| ScriptStep::Write { path: path.into(), text: text(content) };
    let second = Duration::from_secs(1);
    let rows = [
        ("out:hello: you", ScriptStep::Out(text("hello: you"))),
        ("out:", ScriptStep::Out(text(""))),
        ("err:oh", ScriptStep::Err(text("oh"))),
        ("raw:half a line", ScriptStep::Raw(text("half a line"))),
        ("fill:64Ki", ScriptStep::Fill(65536)),
        ("numbers:2Mi/3s", ScriptStep::Numbers { per_second: 2 << 20, time: 3 * second }),
        ("cat:/etc/hosts", ScriptStep::Cat("/etc/hosts".into())),
        ("env:HOME", ScriptStep::Env(text("HOME"))),
        ("id", ScriptStep::Id),
        ("pwd", ScriptStep::Pwd),
        ("write:/a=b=c", write("/a", "b=c")),
        ("write:/a=", write("/a", "")),
        ("touch:/a", ScriptStep::Touch("/a".into())),
        ("wait-file:/a", ScriptStep::WaitFile("/a".into())),
        ("sleep:250ms", ScriptStep::Sleep(Duration::from_millis(250))),
        ("forever", ScriptStep::Forever),
        ("alloc:8Mi", ScriptStep::Alloc(8 << 20)),
        ("child:3s", ScriptStep::Child(3 * second)),
        ("listen:8080", ScriptStep::Listen(8080)),
        ("grpc:8081", ScriptStep::Grpc(8081)),
        ("on-term:ignore", ScriptStep::OnTerm(vec![])),
        ("on-term:exit:7", ScriptStep::OnTerm(vec![ScriptStep::Exit(7)])),
        (
            "on-term:sleep:1s,exit:0",
            ScriptStep::OnTerm(vec![ScriptStep::Sleep(second), ScriptStep::Exit(0)]),
        ),
        (
            "on-term:out:bye,exit:0",
            ScriptStep::OnTerm(vec![ScriptStep::Out(text("bye")), ScriptStep::Exit(0)]),
        ),
        ("exit:255", ScriptStep::Exit(255)),
    ];
    for (argument, step) in rows {
        assert_eq!(parse([argument]), Ok(vec![step]), "{argument}");
    }
}

#[test]
fn steps_keep_their_order_and_no_step_is_a_script_too() {
    let expected =
        vec![ScriptStep::Out(text("a")), ScriptStep::Exit(1), ScriptStep::Out(text("b"))];
    assert_eq!(parse(["out:a", "exit:1", "out:b"]), Ok(expected));
    assert_eq!(parse(Vec::<String>::new()), Ok(vec![]));
}

#[test]
fn the_error_of_a_bad_step_quotes_it_with_what_is_needed() {
    let rows = [
        ("", r#""" is not a step"#),
        ("dance", r#""dance" is not a step"#),
        ("out", r#""out" is not a step"#),
        ("forever:1s", r#""forever:1s" is not a step"#),
        ("sleep:3", r#""sleep:3" needs a duration such as 250ms, 3s or 2m"#),
        ("child:-1s", r#""child:-1s" needs a duration such as 250ms, 3s or 2m"#),
        ("fill:many", r#""fill:many" needs a number of bytes such as 4096, 64Ki or 8Mi"#),
        ("write:/a", r#""write:/a" needs PATH=TEXT"#),
        ("listen:65536", r#""listen:65536" needs a port from 0 to 65535"#),
        ("exit:256", r#""exit:256" needs an exit code from 0 to 255"#),
        ("on-term:", r#""" is not a step"#),
        ("on-term:sleep:1s,out", r#""out" is not a step"#),
        ("on-term:on-term:ignore", r#""on-term:ignore" is not a step"#),
    ];
    for (argument, message) in rows {
        let error = parse([argument]).expect_err(argument);
        assert_eq!(error.to_string(), message);
    }
}
